class Scope:
    """Variables with the bits that were ever stored in them: the order of statements does not count."""
    def __init__(self, parent, node):
        self.parent, self.node, self.vars, self.globals, self.outer = parent, node, {}, set(), set()

class Function:
    def __init__(self, node, scope, owner):
        a = node.args
        self.node, self.scope, self.owner, self.returns = node, scope, owner, 0
        self.names = [p.arg for p in getattr(a, "posonlyargs", []) + a.args]
        self.only = [p.arg for p in a.kwonlyargs]
        self.defaults = dict(zip(self.names[len(self.names) - len(a.defaults):], a.defaults))
        self.defaults.update((n, d) for n, d in zip(self.only, a.kw_defaults) if d is not None)
        self.rest, self.more = a.vararg and a.vararg.arg, a.kwarg and a.kwarg.arg
        how = [last_name(d) for d in node.decorator_list]
        self.static = "staticmethod" in how or "classmethod" in how  # called by the class's name
        if owner and self.names and "staticmethod" not in how:
            scope.vars[self.names.pop(0)] = 0

class Definitions:
    """What is defined where: imports, functions, classes, the option, the objects that have it."""
    def __init__(self, tree):
        self.tree, self.module = tree, Scope(None, tree)
        self.names = {"cache_dir"}          # what the option is called as an attribute
        self.tops, self.imported, self.modules, self.star = [], {}, set(), False
        self.functions, self.methods, self.classes, self.scopes = {}, {}, {}, {}
        self.attributes, self.own, self.holders, self.origins = {}, {}, set(), {}
        self.called, self.referenced, self.parser_calls, self.entries = set(), set(), [], set()
        self.framed = set()  # called by a framework, which has the arguments
        self.definitions, self.needed, self.layout, self.hf, self.holding = 0, False, False, False, set()
        self.data, self.models, self.other, self.out, self.escapes = {}, {}, {}, {}, False
        self.changed, self.tree_config, self.unset, self.sure, self.seen = True, False, 0, 0, 0
        self.collect()
        self.define()

    # ---- what is where
    def collect(self):
        stack, callees, every = [(self.tree, self.module, None)], set(), []
        while stack:
            node, scope, owner = stack.pop()
            every.append(node)
            k = kind(node)
            if k == "Import":
                for a in node.names:
                    self.tops.append(a.name.split(".")[0])
                    self.imported[a.asname or a.name.split(".")[0]] = a.name if a.asname else a.name.split(".")[0]
                    self.modules.add(a.asname or a.name.split(".")[0])
            elif k == "ImportFrom":
                module = "." * node.level + (node.module or "")
                if not node.level:
                    self.tops.append(module.split(".")[0])
                for a in node.names:
                    if a.name == "*":
                        self.star = True
                    self.imported[a.asname or a.name] = module + "." + a.name
            elif k in ("FunctionDef", "AsyncFunctionDef"):
                inner = self.scopes[node] = Scope(scope, node)
                f = Function(node, inner, owner)
                (self.methods if owner else self.functions).setdefault(node.name, []).append(f)
                stack.extend((child, scope, owner) for child in node.decorator_list + list(f.defaults.values()))
                stack.extend((child, inner, None) for child in reversed(node.body))
                continue
            elif k == "ClassDef":
                inner = self.scopes[node] = Scope(scope, node)
                self.classes[node.name] = node
                stack.extend((child, scope, None) for child in node.decorator_list + node.bases)
                stack.extend((child, inner, node) for child in reversed(node.body))
                continue
            elif k in ("Global", "Nonlocal"):
                (scope.globals if k == "Global" else scope.outer).update(node.names)
            elif k == "Call":
                callees.add(node.func)
                self.called.add(last_name(node.func))
            elif k == "Assign" and kind(node.value) == "Call" and kind(node.targets[0]) == "Name":
                self.origins.setdefault(node.targets[0].id, set()).add(self.top(node.value.func))
            stack.extend((child, scope, None) for child in reversed(list(kids(node))))
        self.every = every
        for node in every:
            if kind(node) in ("Name", "Attribute") and node not in callees and kind(node.ctx) == "Load":
                self.referenced.add(last_name(node))
        self.tree_config = any(t in ("hydra", "omegaconf") for t in self.tops)

    def top(self, node):  # of the module that a name comes from; None: not known; "": an object of this file
        while kind(node) in ("Attribute", "Subscript", "Call"):
            node = node.func if kind(node) == "Call" else node.value
        if kind(node) != "Name":
            return ""
        if node.id in self.imported:
            return self.imported[node.id].split(".")[0] or "."
        return None

    # ---- where the option is defined
    def define(self):
        for node in self.every:
            k = kind(node)
            if k == "Call":
                self.define_by_call(node)
            elif k == "ClassDef":
                for one in node.body:
                    if kind(one) == "AnnAssign" and kind(one.target) == "Name" and one.target.id == "cache_dir":
                        self.holding.add(node.name)
                        self.defined(self.is_none_default(one.value))
            elif k in ("FunctionDef", "AsyncFunctionDef"):
                decorators = [decorator(d) for d in node.decorator_list]
                if "option" not in decorators and ("command" in decorators or "callback" in decorators):
                    self.entries.add(node.name)
                if {"option", "command", "callback", "main"}.intersection(decorators):
                    self.framed.add(node.name)
        for name in self.entries:
            for f in self.functions.get(name, []) + [m for m in self.methods.get("__init__", [])
                                                     if m.owner and m.owner.name == name]:
                if "cache_dir" in f.names + f.only:
                    self.defined(self.is_none_default(f.defaults.get("cache_dir")))
        for node in self.every:  # the names that have the option as an attribute
            key = node.attr if kind(node) == "Attribute" else key_of(node) if kind(node) == "Subscript" else None
            if key in self.names and kind(node.ctx) == "Load":
                parts = (dotted(node.value) or "").split(".")
                for i in range(1, len(parts) + 1):
                    if parts[:i] not in (["self"], ["cls"], [""]) and parts[0] not in self.modules:
                        self.holders.add(".".join(parts[:i]))
        for fs in list(self.functions.values()) + list(self.methods.values()):
            for f in fs:
                name = f.owner.name if f.owner and f.node.name == "__init__" else f.node.name
                entry = name not in self.called or name in self.referenced or name in self.entries or \
                    name in self.framed
                f.scope.vars.update((p, V if entry and p in self.names else 0) for p in f.names + f.only)
                f.scope.vars.update((p, 0) for p in (f.rest, f.more) if p)
                if any(decorator(d) == "main" and self.top(d) == "hydra" for d in f.node.decorator_list):
                    f.scope.vars.update((p, N) for p in f.names)

    def defined(self, optional):
        self.definitions += 1
        self.needed = self.needed or not optional

    @staticmethod
    def is_none_default(node):
        if node is None:
            return False
        if kind(node) != "Call":
            return is_none(node)
        if last_name(node.func) not in ("field", "Field", "Option", "Argument", "HfArg", "ib", "attrib"):
            return False
        values = [k.value for k in node.keywords if k.arg == "default"] or \
            (node.args[:1] if last_name(node.func) != "field" else [])
        return bool(values) and is_none(values[0])

    def define_by_call(self, node):
        name = last_name(node.func)
        kw = {k.arg: k.value for k in node.keywords if k.arg}
        spelled = [text(a) for a in node.args if text(a) is not None]
        if name.endswith("HfArgumentParser") or name == "H4ArgumentParser" or (
                name in self.classes and any(last_name(b).endswith("HfArgumentParser")
                                             for b in self.classes[name].bases)):
            self.hf = True
        if name.endswith("ArgumentParser") or name == "TrlParser":
            self.parser_calls.append(node)
            if "argument_default" in kw and not is_none(kw["argument_default"]):
                self.needed = True
        elif name == "set_defaults" and "cache_dir" in kw:
            self.needed = self.needed or not is_none(kw["cache_dir"])
        elif name in ("mark_flag_as_required", "mark_flags_as_required"):
            self.needed = self.needed or any(text(n) == "cache_dir" for a in node.args for n in [a] + list(kids(a)))
        elif name.startswith("DEFINE_") and spelled[:1] == ["cache_dir"]:
            default = node.args[1] if len(node.args) > 1 else kw.get("default")
            self.defined(default is not None and is_none(default) and "required" not in kw)
        elif SPELLINGS.intersection(spelled) or (name == "add_argument" and text(kw.get("dest")) == "cache_dir"):
            known = name in ("add_argument", "option", "add", "add_arg") and None not in [k.arg for k in node.keywords]
            action = text(kw.get("action")) if "action" in kw else "store"
            nargs = text(kw.get("nargs")) if "nargs" in kw else "?"
            required = "required" in kw and getattr(kw["required"], "value", None) is not False
            self.defined(known and action == "store" and nargs == "?" and not required and "prompt" not in kw and
                         "multiple" not in kw and ("default" not in kw or is_none(kw["default"])))
            if "dest" in kw:
                self.names.add(text(kw["dest"]) or "cache_dir")
            elif name == "option":
                self.names.update(s for s in spelled if s.isidentifier())
        if name in CLIS:
            names = {n.id for a in node.args for n in [a] + list(kids(a)) if kind(n) == "Name"}
            if name == "Fire" and not node.args:
                names = {n for n, fs in self.functions.items() if fs[0].scope.parent is self.module}
            self.entries.update(names)

    # ---- caches that the source itself names
    def literal(self, node, depth=0):  # a path that is written out: a string, one that a name stands for, parts of it
        k = kind(node)
        if depth > 8 or node is None:
            return None
        parts = node.args if k == "Call" and last_name(node.func) in ("join", "Path", "str", "expanduser") else \
            node.values if k == "JoinedStr" else [node.left, node.right] if k == "BinOp" else None
        if parts is None:
            return self.literal(node.value, depth + 1) if k == "FormattedValue" else \
                self.literal(self.constants.get(node.id), depth + 1) if k == "Name" else text(node)
        texts = [self.literal(one, depth + 1) for one in parts]
        return None if None in texts else ("" if k == "JoinedStr" or kind(getattr(node, "op", None)) == "Add" else
                                           "/").join(texts)

    def named_caches(self):  # NAME=VALUE of variables (NAME:=VALUE: unless it is set), loaders and the option's default
        assigned = [n for n in self.every if kind(n) == "Assign" and len(n.targets) == 1]
        names = [n.targets[0].id for n in assigned if kind(n.targets[0]) == "Name"]
        self.constants = {n.targets[0].id: n.value for n in assigned
                          if kind(n.targets[0]) == "Name" and names.count(n.targets[0].id) == 1}
        found = [(key_of(n.targets[0]), n.value) for n in assigned if kind(n.targets[0]) == "Subscript" and
                 (dotted(n.targets[0].value) or "").endswith("environ")]
        for node in self.every:
            kw = {k.arg: k.value for k in node.keywords if k.arg} if kind(node) == "Call" else {}
            name = last_name(node.func) if kind(node) == "Call" else ""
            environ = name and kind(node.func) == "Attribute" and (dotted(node.func.value) or "").endswith("environ")
            if environ and name == "setdefault" and len(node.args) == 2:
                found.append(((text(node.args[0]) or "") + ":", node.args[1]))
            elif environ and name == "update":
                found += list(kw.items()) + [(text(key), value) for a in node.args if kind(a) == "Dict"
                                             for key, value in zip(a.keys, a.values) if key is not None]
            elif name in DATASETS or name in READERS and (dotted(node.func) or "").startswith("Dataset"):
                at = DATASETS.get(name, READERS.get(name))
                found.append(("cache_dir", kw.get("cache_dir", node.args[at] if len(node.args) > at else None)))
            elif name in ("add_argument", "option") and SPELLINGS.intersection(text(a) for a in node.args):
                found.append(("--cache_dir", kw.get("default")))
            elif kind(node) == "ClassDef":
                for one in node.body:
                    if kind(one) == "AnnAssign" and kind(one.target) == "Name" and one.target.id == "cache_dir":
                        defaults = [k.value for k in one.value.keywords if k.arg == "default"] \
                            if kind(one.value) == "Call" else [one.value]
                        found += [("--cache_dir", value) for value in defaults]
        texts = [(name, self.literal(value)) for name, value in found]
        return list(dict.fromkeys(name + "=" + value for name, value in texts if name and value))[:50]
