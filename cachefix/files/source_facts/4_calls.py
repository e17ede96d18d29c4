class Calls:
    """Calls: loaders, functions of this file, what is harmless; all others get a value for good."""
    def ev_Call(self, node, scope):
        func, args = node.func, node.args
        if last_name(func) == "partial" and args:
            func, args = args[0], args[1:]
        elif kind(func) == "Attribute" and func.attr == "remote":
            func = func.value
        name = last_name(func)
        top = self.top(func)
        if kind(func) == "Name" and func.id in self.imported:
            name = self.imported[func.id].split(".")[-1]
        shown = dotted(func) or (last_name(func.value.func) + "." if kind(func) == "Attribute" and
                                 kind(func.value) == "Call" else "") + name
        base = self.ev(func.value, scope) if kind(func) == "Attribute" else \
            self.look_up(func.id, scope) & C if kind(func) == "Name" else self.ev(func, scope)
        pos = [self.ev(a, scope) for a in args]
        kw, more = {}, 0
        for k in node.keywords:
            bits = self.ev(k.value, scope)
            if k.arg is None:
                more |= bits
            else:
                kw[k.arg] = bits
        everything = more | union(pos) | union(kw.values())
        starred = any(kind(a) == "Starred" for a in args)

        loader = self.loader(func, name, top)
        if loader:
            return self.load(node, shown, loader, pos, kw, more, starred, everything, top)
        local = self.local(func, name, top)
        if local:
            unbound = kind(func) == "Attribute" and kind(func.value) == "Name" and func.value.id in self.classes and \
                not starred and any(not isinstance(f, list) and f.owner and not f.static for f in local)
            return self.enter(node, local, pos[unbound:], kw, more, args[unbound:])
        if name in PARSERS or (name == "parse" and kind(func) == "Attribute" and
                               last_name(func.value).endswith("parser")) or (name in ("cli", "parse") and top in ("tyro", "draccus", "pyrallis", "simple_parsing")) or (
                name == "load" and top == "omegaconf") or (top not in ("", None) and top not in LIBRARIES and
                name.startswith(("get_", "parse_")) and name.endswith(("args", "arguments", "options", "opts"))):
            if name not in PARSERS and everything & N:
                self.escapes = True
            return N
        if name == "getattr" and len(args) > 1:
            if text(args[1]) in self.names and dotted(args[0]) not in self.modules:
                if len(args) > 2 and not is_none(args[2]):
                    self.needed = True
                return V
            return self.attributes.get(text(args[1]) or "", 0) if text(args[1]) else C if pos[0] & N else 0
        if name == "setattr" and len(args) > 2:
            if text(args[1]) in self.names:
                self.option_assigned(pos[2], args[2])
                return 0
            self.escapes = self.escapes or bool(pos[2] & N)
            return self.used(node, "setattr", pos[2]) or 0
        if kind(func) == "Attribute" and name in ("get", "pop", "setdefault") and args and text(args[0]) in self.names:
            if (dotted(func.value) or "").split(".")[0] not in self.imported:
                if len(args) > 1 and not is_none(args[1]):
                    self.needed = True
                if name == "pop" and base & K:
                    self.put_into(func.value, O, scope)
                return V
        if name in ("get", "pop", "setdefault") and base & C and not everything & TAINT:
            return self.element(base)
        if name == "setdefault" and everything & TAINT and top is None:
            self.put_into(func.value, K if text(args[0]) in self.names else C, scope)
            return V
        if name == "exec" or top == "runpy":
            self.escapes = True
        if name == "update" and kind(func) == "Attribute" and top is None and everything & (TAINT | N):
            into = more & (K | C | D) | (K if any(kw.get(n, 0) & V for n in self.names) else 0) | \
                union(pos) & (K | C | D | N)
            if any(b & TAINT for n, b in kw.items() if n not in self.names):
                into |= C
            self.put_into(func.value, into, scope)
            return 0
        if name in ("append", "extend", "add", "insert") and kind(func) == "Attribute" and top is None and \
                everything & TAINT:
            self.put_into(func.value, C | everything & D, scope)
            return 0
        if name in LOGS or shown.endswith(("Error", "Exception", "Warning")):
            return 0
        if (base | everything) & (V | D) and name in SAME_PATH and len(pos) <= 1:
            self.needs()
            return base if base & (V | D) else everything
        if name in MAKES and (top in ("os", "pathlib") or base & V) and not (base | everything) & (D | K | C):
            if (base | everything) & V:
                self.needs()
            return 0
        if name in ("join", "joinpath", "format", "dirname", "basename", "Path", "PurePath", "with_suffix") and (
                (everything | base) & (TAINT | L) or name == "join"):
            local_path = L if name in ("join", "Path", "joinpath") and not (
                args and text(args[0]) is not None and not pos[0] & L) and text(
                    func.value if kind(func) == "Attribute" else func) is None else 0
            return D if (everything | base) & TAINT else local_path
        if name in SAME:
            found = (everything | base) & (N | K | C | D)
            for n, bits in kw.items():
                found |= (K if n in self.names and bits & (V | D) else C if bits & TAINT else 0) | bits & D
            return found | (base | everything) & V if name in ("deepcopy", "copy", "unwrap") else found
        if name in HOLDERS:
            return inside(everything | base)
        if name == "cast" and len(pos) == 2:
            return pos[1]
        if name.endswith("Trainer") and top in ("trl", "transformers", None, ""):
            given = [a for a in args[:1]] + [k.value for k in node.keywords if k.arg == "model"]
            if any(text(a) or (dotted(a) or "").endswith(("name_or_path", "model_name", "model_id", "model_path"))
                   for a in given):
                self.models[node] = (1, 0)  # it loads the model itself
        if top not in LIBRARIES and top not in (None, ""):
            given = [n for n in MODEL_DIRECTORIES if kw.get(n, 0) & V]
            if given:
                self.models[node], self.layout, self.needed = (1, 1), True, True
                everything = more | union(pos) | union(bits for n, bits in kw.items() if n not in given)
            elif loads_model(name, top):
                self.models[node] = (1, 0)
        self.used(node, shown, everything & TAINT | base & (V | D))
        if everything & N and (
                name not in RECORDS and not name.startswith("parse_") and not self.is_library(func, scope)
                or name in ("instantiate", "build_from_cfg") and self.tree_config
                or any(self.top(a) not in LIBRARIES and self.top(a) is not None and kind(a) == "Name"
                       for a in node.args + [k.value for k in node.keywords])):
            self.escapes = True  # a library may be to call another file's code with it
        temporary = L if name in ("mkdtemp", "get_last_checkpoint", "TemporaryDirectory", "gettempdir") else 0
        return temporary | self.element(base & C) | (N & everything if name == "dumps" else 0)

    def is_library(self, func, scope):
        top = self.top(func)
        if top in LIBRARIES:
            return True
        if kind(func) == "Attribute" and kind(func.value) == "Call" and last_name(func.value.func) == "super":
            while scope is not None and kind(scope.node) != "ClassDef":
                scope = scope.parent
            return scope is not None and all(self.top(b) in LIBRARIES for b in scope.node.bases)
        if kind(func) == "Name" and func.id in self.classes:
            return all(self.is_library(b, None) for b in self.classes[func.id].bases if last_name(b) != func.id)
        root = func
        while kind(root) in ("Attribute", "Subscript"):
            root = root.value
        tops = self.origins.get(getattr(root, "id", None)) if root is not func else None
        return kind(func) == "Name" and top is None and func.id not in self.origins and not self.star or \
            bool(tops) and all(t in LIBRARIES for t in tops)

    def loader(self, func, name, top):
        """(kind, keywords of the option, its position, whether dropping it leaves the hub's own layout)"""
        if name in self.functions and kind(func) == "Name":
            return None
        attribute = kind(func) == "Attribute"
        receiver = last_name(func.value) if attribute else ""
        if receiver in self.imported:
            receiver = self.imported[receiver].split(".")[-1]
        if name in DATASETS and (top == "datasets" or (top is None and not attribute)):
            return "data", ("cache_dir",), DATASETS[name], True
        if name in READERS and receiver in ("Dataset", "DatasetDict") and top in ("datasets", None):
            return "data", ("cache_dir",), READERS[name], True
        if name == "load" and receiver == "MsDataset":
            return "data", ("cache_dir",), -1, False
        if (name == "load_metric" and top in ("datasets", None)) or (name == "load" and top == "evaluate"):
            return "metric", ("cache_dir",), 4 if name == "load_metric" else 5, True
        if name == "from_pretrained" and attribute:
            if receiver in self.classes and any(m.owner is self.classes[receiver] for m in self.methods.get(name, [])):
                return None
            return "model", ("cache_dir",), -1, top != "modelscope"
        if name in HUB and (top in ("huggingface_hub", "transformers", "diffusers", "modelscope", None) or attribute):
            return "model", ("cache_dir",), -1, top != "modelscope"
        if name in MAY_BE_HUB and attribute:
            return "extra", ("cache_dir",), -1, True
        if name == "pipeline" and top == "transformers":
            return "model", ("model_kwargs",), -1, True
        if name in ("SentenceTransformer", "CrossEncoder", "SparseEncoder") and top in ("sentence_transformers", None):
            return "model", ("cache_folder", "cache_dir", "model_kwargs"), -1, True
        if name == "LLM" and top == "vllm":
            return "model", ("download_dir",), -1, True
        if name in ELSEWHERE and top in ("open_clip", "timm", None) or name == "get_tokenizer" and top == "open_clip":
            return "extra", ("cache_dir",), -1, False
        return None

    def load(self, node, shown, loader, pos, kw, more, starred, everything, top):
        what, keywords, index, hub = loader
        given = (V if more & K and not more & D else 0) | more & (D | O if more & K else 0)
        rest = more & C
        for keyword, bits in kw.items():
            if keyword in keywords:
                given |= bits if keyword != "model_kwargs" else (V if bits & K else 0) | bits & (O | D)
                rest |= bits & (C if keyword == "model_kwargs" else C | K)
            else:
                rest |= bits & TAINT
        for i, bits in enumerate(pos):
            if i == index and not starred:
                given |= bits
            else:
                rest |= bits & TAINT
        if what != "data" and given & D:
            rest |= D
            given = given & ~(D | V)
        elif given & D:
            self.needed = True
        with_it = bool(given & (V | D))
        if what == "metric" and node.args and text(node.args[0]) in MODEL_METRICS:
            self.models[node] = (1, 0)  # whose model comes from the hub's own directory
        self.used(node, shown, rest)
        if everything & N and top not in LIBRARIES:
            self.escapes = True
        if not with_it and (what == "metric" or (what == "extra" and top is None and shown.split(".")[-1] in ELSEWHERE)):
            return 0
        if not with_it and what != "data":
            index = 1 if ("." + shown).split(".")[-2].startswith("Peft") else 0
            place = pos[index] if len(pos) > index else kw.get("pretrained_model_name_or_path", kw.get("model_id", 0))
            if place & L and not place & O:  # a directory of the program's own
                return 0
        if with_it and not hub:
            self.needed = self.layout = True
        count = (2, 1) if with_it and given & (O | L) else (1, 1 if with_it else 0)
        (self.data if what in ("data", "metric") else self.models)[node] = count
        return 0

    def local(self, func, name, top):
        if kind(func) == "Name":
            return self.functions.get(func.id) or self.constructors(func.id)
        if kind(func) != "Attribute" or top not in (None, ""):
            return None
        if kind(func.value) == "Call" and last_name(func.value.func) == "super":
            return None
        if name in ("get", "update", "pop", "append", "copy", "items", "info", "log", "print", "write"):
            if dotted(func.value) not in ("self", "cls"):
                return None
        tops = self.origins.get(func.value.id) if kind(func.value) == "Name" else None
        if tops and all(tops):  # made by another file's code
            return None
        return self.methods.get(name)

    def constructors(self, name, depth=0):
        if name not in self.classes or depth > 20:
            return None
        own = [m for m in self.methods.get("__init__", []) if m.owner is self.classes[name]]
        for b in self.classes[name].bases if not own else []:
            own = own or self.constructors(last_name(b), depth + 1) or []
        fields = [] if own else [one.target.id for one in self.classes[name].body
                                 if kind(one) == "AnnAssign" and kind(one.target) == "Name"]
        return own or ([fields] if fields else None)

    def enter(self, node, local, pos, kw, more, args):
        found = 0
        for f in local:
            if isinstance(f, list):  # the fields of a dataclass
                found |= N if "cache_dir" in f else 0
                for n, bits in list(kw.items()) + list(zip(f, pos)):
                    if n in self.names:
                        self.option_assigned(bits, None)
                    elif bits & (TAINT | N):
                        self.keep(self.attributes, n, bits)
                continue
            bound = {}
            for i, bits in enumerate(pos):
                if kind(args[i]) == "Starred":
                    for n in f.names[i:]:
                        bound[n] = bound.get(n, 0) | self.element(bits)
                elif i < len(f.names):
                    bound[f.names[i]] = bits
                elif f.rest:
                    bound[f.rest] = bound.get(f.rest, 0) | inside(bits)
            handed = 0
            for n, bits in kw.items():
                if n in f.names or n in f.only:
                    bound[n] = bits
                else:
                    handed |= (K if n in self.names and bits & (V | D) else C if bits & TAINT else 0) | bits & (D | N)
            for n in f.names + f.only:
                if n not in bound:
                    if f.node.name in self.framed:
                        continue
                    if more & (K | N) and n in self.names:
                        bound[n] = V | more & D
                        more &= ~K
                    elif more & C:
                        bound[n] = V | O
                    elif n in f.defaults:
                        bound[n] = self.ev(f.defaults[n], f.scope.parent) & ~L or O
                elif not bound[n]:
                    bound[n] = O
            if f.more:
                bound[f.more] = handed | more or O
            elif handed & TAINT:
                self.used(node, f.node.name, handed)
            for n, bits in bound.items():
                self.store(n, bits, f.scope)
            found |= f.returns
        return found
