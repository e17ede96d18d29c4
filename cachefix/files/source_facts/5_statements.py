class Reader(Definitions, Values, Calls):
    """Runs over the statements until nothing new is known; the last run counts."""
    def tests(self, node, scope):  # is the option's value asked for?
        before = self.seen
        self.ev(node, scope)
        return self.seen > before

    def missing(self, test):  # may the tested value be None in the one branch, in the other?
        k = kind(test)
        if k == "Compare" and len(test.ops) == 1 and (is_none(test.comparators[0]) or text(test.comparators[0]) == ""):
            return (1, 0) if kind(test.ops[0]) in ("Is", "Eq") else (0, 1)
        if k == "UnaryOp" and kind(test.op) == "Not":
            return self.missing(test.operand)[::-1]
        if k == "BoolOp":
            parts = [self.missing(v) if self.mentions(v) else (1, 1) for v in test.values]
            ends = (min, max) if kind(test.op) == "And" else (max, min)
            return ends[0](p[0] for p in parts), ends[1](p[1] for p in parts)
        return (0, 1) if k in ("Name", "Attribute", "Subscript") or (k == "Call" and last_name(test.func) in (
            "getattr", "get")) else (1, 1)

    def mentions(self, node):  # tells the option's test from another's in `a and b`; the names are enough for that
        return any("cache" in last_name(n) or "cache" in (text(n) or "") or last_name(n) in self.names
                   for n in below([node]))

    def branch(self, body, scope, without, sure=0):
        self.unset += without
        self.sure += sure
        for one in body:
            self.run(one, scope)
        self.unset -= without
        self.sure -= sure
        if without and any(kind(n) == "Raise" or (kind(n) == "Call" and last_name(n.func) in (
                "exit", "_exit", "error", "abort", "fail")) for n in below(body)):
            self.needed = True

    def run(self, node, scope):
        k = kind(node)
        if k in ("FunctionDef", "AsyncFunctionDef", "ClassDef"):
            for child in node.decorator_list + (node.bases if k == "ClassDef" else []):
                self.ev(child, scope)
            inner = self.scopes[node]
            for one in node.body:
                self.run(one, inner)
                if k == "ClassDef" and kind(one) == "Assign":
                    for t in one.targets:
                        if kind(t) == "Name" and inner.vars.get(t.id, 0) & TAINT:
                            self.keep(self.attributes, t.id, inner.vars[t.id])
        elif k == "Assign":
            bits = self.ev(node.value, scope)
            for t in node.targets:
                self.assign(t, bits, scope, node.value)
        elif k == "AnnAssign":
            bits = self.ev(node.value, scope)
            if node.value is not None and kind(scope.node) != "ClassDef":
                self.assign(node.target, bits, scope, node.value)
        elif k == "AugAssign":
            bits = self.ev(node.value, scope) | self.ev(node.target, scope)
            self.assign(node.target, (D if bits & (V | D) else 0) | bits & (C | K | N) | (O if not bits else 0), scope)
        elif k in ("For", "AsyncFor"):
            self.assign(node.target, self.element(self.ev(node.iter, scope)), scope)
            self.branch(node.body + node.orelse, scope, 0)
        elif k in ("With", "AsyncWith"):
            for item in node.items:
                bits = self.ev(item.context_expr, scope)
                if item.optional_vars is not None:
                    self.assign(item.optional_vars, bits, scope)
            self.branch(node.body, scope, 0)
        elif k == "If":
            tested = self.tests(node.test, scope)
            in_body, in_else = self.missing(node.test) if tested else (0, 0)
            self.branch(node.body, scope, in_body, tested and not in_body)
            self.branch(node.orelse, scope, in_else, tested and not in_else)
        elif k == "Assert":
            self.needed = self.tests(node.test, scope) or self.needed
        elif k == "Match" and self.ev(node.subject, scope) & TAINT:
            self.used(node, "match", self.ev(node.subject, scope) & TAINT)
            self.branch([s for case in node.cases for s in case.body], scope, 0)
        elif k == "Return":
            self.give_back(self.ev(node.value, scope), scope)
        else:
            for child in kids(node):
                if isinstance(child, _ast.stmt) or kind(child) in ("ExceptHandler", "match_case"):
                    self.run(child, scope)
                elif isinstance(child, _ast.expr):
                    self.ev(child, scope)

    def facts(self):
        for i in range(12):
            self.changed, self.data, self.models, self.other, self.out = False, {}, {}, {}, {}
            for one in self.tree.body:
                self.run(one, self.module)
            if not self.changed:
                break
        else:
            self.escapes = True
        def first(places):
            at = min(places) if places else None
            return "%s, line %d" % (places[at], at[0]) if at else ""
        return (("imports", list(dict.fromkeys(self.tops))[:500]), ("hf_arguments", self.hf), ("definitions", self.definitions),
                ("optional", self.definitions > 0 and not self.needed),
                ("dataset_calls", sum(n for n, _ in self.data.values())),
                ("dataset_calls_with", sum(n for _, n in self.data.values())),
                ("model_calls", sum(n for n, _ in self.models.values())),
                ("model_calls_with", sum(n for _, n in self.models.values())),
                ("other_use", first(self.other)), ("outputs", first(self.out)), ("escapes", self.escapes), ("own_layout", self.layout),
                ("caches", self.named_caches()))

Reader.handlers = {name[3:]: getattr(Reader, name) for name in dir(Reader) if name.startswith("ev_")}

def quoted(value):
    if isinstance(value, int):  # which bool is, too
        return str(value).lower()
    if isinstance(value, list):
        return "[" + ",".join(quoted(v) for v in value) + "]"
    return '"' + "".join(c if c > "\x1f" and c not in '"\\' else "\\u%04x" % ord(c) for c in value) + '"'

try:
    source = sys.stdin.buffer.read((1 << 19) + 1)  # a program of that size takes 250 MB as a tree
    if len(source) > 1 << 19:
        sys.exit(1)
    sys.setrecursionlimit(3000)
    facts = Reader(compile(source, "source", "exec", _ast.PyCF_ONLY_AST, True)).facts()
    sys.stdout.buffer.write(("{" + ",".join('"%s":%s' % (n, quoted(v)) for n, v in facts) + "}").encode())
except Exception:  # no Python of this interpreter, or too deep: nothing is printed
    sys.exit(1)
