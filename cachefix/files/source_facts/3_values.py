class Values:
    """What expressions hold, and where assignments put it."""
    def look_up(self, name, scope):
        found = N if name in self.holders else 0
        if name.endswith(DIRECTORIES):
            found |= L
        while scope is not None:
            if name in scope.vars:
                return found | scope.vars[name]
            scope = scope.parent
        return found

    @staticmethod
    def owner_of(name, scope):  # the scope that has the variable, which may be an outer one
        owner = scope
        while owner is not None and name not in owner.vars:
            owner = owner.parent
        return owner or scope

    def store(self, name, bits, scope):
        if name in scope.globals:
            scope = self.module
        elif name in scope.outer:
            scope = self.owner_of(name, scope.parent)
        old = scope.vars.get(name, 0)
        if self.unset and old & V and bits & (O | L) and not bits & TAINT:  # a default where the option has none
            self.needed = True
            return
        if old | bits != old or name not in scope.vars:
            scope.vars[name] = old | bits
            self.changed = True

    def keep(self, table, name, bits):
        bits = bits & (TAINT | N | O) if bits & (TAINT | N) else 0
        if bits | table.get(name, 0) != table.get(name, 0) or name not in table:
            table[name] = bits | table.get(name, 0)
            self.changed = True

    @staticmethod
    def class_of(scope):
        while scope is not None and kind(scope.node) != "ClassDef":
            scope = scope.parent
        return scope and scope.node.name

    def element(self, bits):
        return (V | O if bits & C else 0) | (bits & (N | D)) | (O if bits & (K | V) else 0)

    def used(self, node, name, bits):
        place = (node.lineno, node.col_offset)
        name = (name or "a call")[:60]
        if bits & (V | K | C):
            self.other[place] = name
        if bits & D:
            self.out[place] = name

    def needs(self):  # None would not do here
        self.needed = self.needed or not self.sure

    def option_assigned(self, bits, value):
        if not bits & V and not (value is not None and is_none(value)):
            self.needed = True

    def assign(self, target, bits, scope, value=None):
        k = kind(target)
        if k == "Name":
            if not bits and not (value is not None and (is_none(value) or kind(value) == "Dict" or (
                    kind(value) == "Call" and last_name(value.func) == "dict"))):
                bits = O  # a dict that is built up later is neither
            self.store(target.id, bits, scope)
        elif k in ("Tuple", "List"):
            if kind(value) in ("Tuple", "List") and len(value.elts) == len(target.elts):
                for t, v in zip(target.elts, value.elts):
                    self.assign(t, self.ev(v, scope), scope, v)
                return
            positions = self.positions(value)
            for i, t in enumerate(target.elts):
                self.assign(t, self.element(bits) | bits & V if positions is None else
                            N if i < len(positions) and positions[i] else O, scope)
        elif k == "Starred":
            self.assign(target.value, bits, scope)
        elif k == "Attribute":
            root = dotted(target.value)
            if root in ("self", "cls"):
                if target.attr not in self.names:
                    self.keep(self.attributes, target.attr, bits)
                elif self.holds(self.class_of(scope)):
                    self.option_assigned(bits, value)
                else:
                    self.keep(self.own, self.class_of(scope), bits)
            elif (root or "").split(".")[0] in self.modules:
                self.used(target, dotted(target), bits)
                self.escapes = self.escapes or bool(bits & N)
            elif target.attr in self.names:
                self.option_assigned(bits, value)
                self.used(target, dotted(target), bits & (K | C))
            elif bits & N:
                self.keep(self.attributes, target.attr, bits & N)
                top = root and root.split(".")[0]
                if top in self.imported:
                    self.escapes = True
                elif top:
                    self.store(top, N, scope)
            else:
                self.used(target, dotted(target) or target.attr, bits)
        elif k == "Subscript":
            root = dotted(target.value)
            if root is None or root.split(".")[0] in self.imported:
                self.used(target, root, bits)
            elif key_of(target) in self.names:
                if self.ev(target.value, scope) & N:
                    self.option_assigned(bits, value)
                else:
                    self.put_into(target.value, (K if bits & (V | D) else 0) | bits & D or O, scope)
            elif bits & (TAINT | N):
                self.put_into(target.value, inside(bits), scope)

    def put_into(self, node, bits, scope):
        if kind(node) == "Name":
            self.store(node.id, bits, self.owner_of(node.id, scope))
        elif kind(node) == "Attribute":
            self.keep(self.attributes, node.attr, bits)
        else:
            self.used(node, dotted(node), bits)

    def positions(self, node):  # of the tuple that a parser returns: which may have the option
        if kind(node) != "Call" or last_name(node.func) not in PARSERS:
            return None
        if last_name(node.func).startswith("parse_known"):
            return [True, False]
        for call in self.parser_calls:
            first = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "dataclass_types"),
                                                        None)
            names = [last_name(e) for e in first.elts] if kind(first) in ("Tuple", "List") else [last_name(first)] \
                if first is not None else []
            if any(self.holds(n) for n in names):
                return [self.holds(n) for n in names]
        return None

    def holds(self, name, depth=0):
        if name in self.holding or depth > 20:
            return name in self.holding
        return name in self.classes and any(self.holds(last_name(b), depth + 1) for b in self.classes[name].bases)

    def ev(self, node, scope):
        if node is None:
            return 0
        bits = self.handlers.get(node.__class__.__name__, Values.ev_other)(self, node, scope)
        self.seen += bits & V
        return bits

    def ev_other(self, node, scope):
        bits = union(self.ev(child, scope) for child in kids(node))
        return (C if bits & V else 0) | bits & ~(V | L | O)

    def ev_Name(self, node, scope):
        return self.look_up(node.id, scope)

    def ev_Attribute(self, node, scope):
        base = self.ev(node.value, scope)
        name = dotted(node) or ""
        root = name.split(".")[0]
        bits = N if name in self.holders else L if node.attr.endswith(DIRECTORIES) else 0
        if root in self.modules and kind(node.value) == "Name":
            return N if name == "sys.argv" else 0
        if node.attr in self.names:
            own = name in ("self." + node.attr, "cls." + node.attr)
            return self.own.get(self.class_of(scope), V) if own else V
        if node.attr == "from_pretrained":
            self.models[node] = (1, 0)  # as a value: called where nobody sees it
        bits |= self.attributes.get(node.attr, 0)
        for f in self.methods.get(node.attr, []):
            bits |= f.returns if any("property" in last_name(d) for d in f.node.decorator_list) else 0
        if node.attr == "__dict__" or self.tree_config:
            bits |= base & N
        return bits | (D if base & (V | D) else 0) | (C if base & (K | C) else 0)

    def ev_Subscript(self, node, scope):
        base = self.ev(node.value, scope)
        self.ev(node.slice, scope)
        key = key_of(node)
        if key in self.names:
            return V if (dotted(node.value) or "").split(".")[0] not in self.imported or base & N else 0
        if dotted(node) in self.holders:
            return N
        positions = self.positions(node.value)
        index = getattr(node.slice.value if kind(node.slice) == "Index" else node.slice, "value", None)
        if positions is not None and isinstance(index, int):
            return N if -len(positions) <= index < len(positions) and positions[index] else O
        if kind(node.slice) in ("Slice", "ExtSlice") and base & (V | D):
            return D
        return self.element(base) & ~O | (V if base & C else 0)

    def ev_Constant(self, node, scope):
        value = text(node)
        return L if value and value.startswith(("/", "./", "../", "~/")) else 0
    ev_Str = ev_Constant

    def ev_JoinedStr(self, node, scope):
        parts = [self.ev(getattr(v, "value", v) if kind(v) == "FormattedValue" else v, scope) for v in node.values]
        return (D if union(parts) & TAINT else 0) | (parts[0] & L if parts else 0)

    def ev_BinOp(self, node, scope):
        left, right = self.ev(node.left, scope), self.ev(node.right, scope)
        both = left | right
        return (D if both & (V | D) else 0) | both & (K | C | N) | left & L

    def ev_BoolOp(self, node, scope):
        bits, found, sure = [], 0, self.sure
        for v in node.values:
            before = self.seen
            bits.append(self.ev(v, scope))
            found |= bits[-1]
            if self.seen > before and self.missing(v)[kind(node.op) == "Or"] == 0:
                self.sure += 1
        self.sure = sure
        if kind(node.op) == "Or" and found & V:
            if not all(b & V or is_none(v) for b, v in zip(bits, node.values)):
                self.needed = True
            return found & ~O
        return found

    def ev_IfExp(self, node, scope):
        tested = self.tests(node.test, scope)
        missing = self.missing(node.test) if tested else (1, 1)
        values = []
        for part, without in zip((node.body, node.orelse), missing):
            self.sure += not without
            values.append(self.ev(part, scope))
            self.sure -= not without
        a, b = values
        for bits, value in ((a, node.body), (b, node.orelse)):
            if (a | b) & K and not bits & K and not tested:
                return a | b | O
            if (a | b) & V and not bits & V and not is_none(value):
                if not tested:
                    return a | b | O
                self.needed = True
        return (a | b) & ~(L if not a & b & L else 0)

    def ev_Compare(self, node, scope):
        self.ev_other(node, scope)
        return 0
    ev_UnaryOp = ev_Compare

    def ev_NamedExpr(self, node, scope):
        bits = self.ev(node.value, scope)
        self.assign(node.target, bits, scope, node.value)
        return bits

    def ev_Dict(self, node, scope):
        found = 0
        for key, value in zip(node.keys, node.values):
            bits = self.ev(value, scope)
            self.ev(key, scope)
            if key is None:
                found |= bits & (K | C | N | D)
            elif text(key) in self.names:
                found |= (K if bits & (V | D) else C if bits & (K | C) else 0) | bits & D
            else:
                found |= inside(bits)
        return found

    def ev_Tuple(self, node, scope):
        return inside(union(self.ev(e, scope) for e in node.elts))
    ev_List = ev_Set = ev_Tuple

    def ev_Starred(self, node, scope):
        return self.ev(node.value, scope)

    def ev_Lambda(self, node, scope):
        inner = self.scopes.get(node)
        if inner is None:
            inner = self.scopes[node] = Scope(scope, node)
            inner.vars.update((p.arg, 0) for p in node.args.args)
        bits = self.ev(node.body, inner)
        return (C if bits & TAINT else 0) | bits & N

    def ev_ListComp(self, node, scope):
        inner = self.scopes.setdefault(node, Scope(scope, node))
        for g in node.generators:
            self.assign(g.target, self.element(self.ev(g.iter, inner)), inner)
            for test in g.ifs:
                self.ev(test, inner)
        return inside(union(self.ev(getattr(node, part, None), inner) for part in ("key", "value", "elt")))
    ev_SetComp = ev_GeneratorExp = ev_DictComp = ev_ListComp

    def ev_Yield(self, node, scope):
        self.give_back(C if self.ev(node.value, scope) & TAINT else 0, scope)
        return 0

    def give_back(self, bits, scope):
        while scope is not None and kind(scope.node) not in ("FunctionDef", "AsyncFunctionDef"):
            scope = scope.parent
        for f in scope and self.functions.get(scope.node.name, []) + self.methods.get(scope.node.name, []) or []:
            if f.node is scope.node and f.returns | bits != f.returns:
                f.returns |= bits
                self.changed = True
