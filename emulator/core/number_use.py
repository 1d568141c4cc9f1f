"""What a program does with a number that it reads from the card, as far as its source shows.

It runs inside the program, in the program's own interpreter, and keeps nothing: objects that stay would move the program's garbage
collections, which free tensors (python_place.cpp).
"""

import ast
import sys
import warnings
from types import SimpleNamespace

FLAGS = {"makes_integer": 1, "only_logged": 2, "only_printed": 4}
CONVERSIONS = {"int", "floor", "ceil", "trunc", "range"}  # make an integer of their argument
READS = {"cpu", "item", "numpy", "to", "tolist", "float", "format", "int", "print", "str"}  # give the program what they read
# Functions and methods whose result holds their arguments, or what they are called on.
FUNCTIONS = {"abs", "dict", "divmod", "enumerate", "float", "format", "int", "len", "list", "max", "min", "pow", "repr", "round", "sorted", "str", "sum", "tuple", "zip"}
MATHEMATICS = {"array", "asarray", "concatenate", "exp", "log", "mean", "median", "sqrt", "std", "sum"}  # of math and numpy
METHODS = {"cpu", "detach", "float", "format", "get", "item", "items", "join", "mean", "numpy", "sum", "tolist", "values"}
KEEPERS = {"add", "append", "extend", "insert", "setdefault", "update"}  # methods whose object holds their arguments from then on
MAKERS = {"Counter", "OrderedDict", "defaultdict", "deque", "dict", "list", "set"}  # of what KEEPERS are methods of
# Methods of loggers and meters, which are called for nothing but what they do.
LOGGERS = {"add", "add_scalar", "add_scalars", "debug", "info", "log", "log_dict", "log_metric", "log_metrics", "record", "report", "set_description",
           "set_postfix", "track", "update", "warning", "write"}  # fmt: skip
HIDING = {"eval", "exec", "globals", "locals", "vars"}  # whoever calls them does what its source does not show
SAFE = {"abs", "float", "format", "repr", "str"}  # functions that take any number

Function = (ast.FunctionDef, ast.AsyncFunctionDef)
Comprehension = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
Holder = (ast.BinOp, ast.UnaryOp, ast.Compare, ast.FormattedValue, ast.JoinedStr, ast.Tuple, ast.List, ast.Dict, ast.Starred, *Comprehension)


def number_use(file, *position):
    """The sum of FLAGS for the expression at (line, last line, column, last column); 0 where it is not found."""
    source = source_of(file)
    is_whole = source is not None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the program's own compilation has given them
            program = program_of(ast.parse(source if is_whole else cell_of(file)))
    except (SyntaxError, ValueError, RecursionError):
        return 0
    node = expression_at(program, position)
    if node is None:
        return 0
    found = {"makes_integer": makes_integer(program, node)}
    if is_whole:
        program.is_script = is_script(file)
        found.update(only_logged=only_logs(program, node), only_printed=is_printed(program, node))
    return sum(FLAGS[name] for name, is_so in found.items() if is_so)


def source_of(file):
    try:
        with open(file, "rb") as source:
            return source.read()
    except OSError:
        return None


def is_script(file):
    """Whether it is what was started: another file may use what this one names."""
    return getattr(sys.modules.get("__main__"), "__file__", None) == file


def cell_of(file):
    """Of a notebook: other cells may use what this one names."""
    lines = getattr(sys.modules.get("linecache"), "cache", {}).get(file, ())
    return "".join(lines[2]) if len(lines) > 2 else ""


def program_of(tree):
    """No class of ours: one refers to itself, and so stays until a collection."""
    program = SimpleNamespace(nodes=list(ast.walk(tree)), is_script=False)
    program.parents = {child: node for node in program.nodes for child in ast.iter_child_nodes(node)}
    program.functions = nodes_of(program, Function)
    imports = [(getattr(node, "module", None), alias) for node in nodes_of(program, (ast.Import, ast.ImportFrom)) for alias in node.names]
    program.of_torch = {(alias.asname or alias.name).split(".")[0] for module, alias in imports if (module or alias.name).split(".")[0] == "torch"}
    return program


def nodes_of(program, kind):
    return [node for node in program.nodes if isinstance(node, kind)]


def expression_at(program, position):
    return next((node for node in nodes_of(program, ast.expr) if (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset) == position), None)


def makes_integer(program, node):
    while isinstance(program.parents[node], (ast.BinOp, ast.UnaryOp)):
        node = program.parents[node]
    call = program.parents[node]
    return name_called(node) in CONVERSIONS or (name_called(call) in CONVERSIONS and call.func is not node)


def is_printed(program, node):
    """Whether it stands in a statement `print(...)`, and nothing around it decides anything or fails for some number."""
    own = {function.name for function in program.functions}
    while True:
        parent = program.parents[node]
        if isinstance(parent, ast.Call) and parent.func is not node and isinstance(parent.func, ast.Name) and parent.func.id not in own:
            if parent.func.id == "print":
                return isinstance(program.parents[parent], ast.Expr)
            if parent.func.id not in SAFE:
                return False
        elif isinstance(parent, ast.Attribute) and parent.attr in ("cpu", "detach", "item") and name_called(program.parents[parent]) == parent.attr:
            parent = program.parents[parent]
        elif not is_safe_expression(parent, node):
            return False
        node = parent


def is_safe_expression(parent, node):
    if isinstance(parent, ast.BinOp):
        is_text = isinstance(parent.op, ast.Mod) and parent.right is node and isinstance(getattr(parent.left, "value", None), str)
        return is_text or isinstance(parent.op, (ast.Add, ast.Sub, ast.Mult)) or (isinstance(parent.op, ast.Div) and parent.left is node)
    return isinstance(parent, (ast.FormattedValue, ast.JoinedStr, ast.Tuple, ast.UnaryOp))


def only_logs(program, node):
    """Whether nothing but texts, logs and other such numbers comes of it: no branch, size or index, and no argument of unknown code."""
    hides = any(isinstance(one, ast.Call) and getattr(one.func, "id", "") in HIDING for one in program.nodes)
    is_thrown_away = isinstance(program.parents[node], ast.Expr) and name_called(node) != "print"
    is_text = isinstance(node, (ast.JoinedStr, ast.FormattedValue)) or (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod))
    if (name_called(node) not in READS and not is_text) or hides or is_thrown_away:
        return False
    seen, left = set(), [node]
    while left:
        holders = next_holders(program, left.pop())
        if holders is None:
            return False
        left += [one for one in holders if one not in seen]
        seen.update(holders)
    return True


def next_holders(program, node):
    """The expressions that hold the number next. None: the program acts on it, or may."""
    parent = program.parents[node]
    if isinstance(parent, ast.Expr):
        return []
    if isinstance(parent, Holder) or (isinstance(parent, ast.IfExp) and parent.test is not node) or (isinstance(parent, ast.Subscript) and parent.value is node):
        return [parent]
    if isinstance(parent, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        return together(loads_of(program, target) for target in getattr(parent, "targets", None) or [parent.target])
    if isinstance(parent, (ast.For, ast.comprehension)) and parent.iter is node:
        return loads_of(program, parent.target)
    if isinstance(parent, ast.Attribute):
        call = program.parents[parent]
        return [call] if name_called(call) in METHODS | KEEPERS and call.func is parent else None
    if isinstance(parent, ast.keyword):
        return holders_after_call(program, program.parents[parent], parent.arg)
    if isinstance(parent, ast.Call) and parent.func is not node:
        return holders_after_call(program, parent, parent.args.index(node))
    if isinstance(parent, ast.Return):
        return calls_of(program, function_around(program, parent))
    return None


def loads_of(program, target):
    """Where what is stored there is read."""
    if isinstance(target, (ast.Tuple, ast.List)):
        return together(loads_of(program, one) for one in target.elts)
    if isinstance(target, ast.Subscript):
        return loads_of_container(program, target.value)
    if isinstance(target, ast.Attribute):
        loads = [node for node in nodes_of(program, ast.Attribute) if node.attr == target.attr and isinstance(node.ctx, ast.Load)]
        return loads if loads and program.is_script and not calls_any(program, ("getattr",)) else None
    return loads_of_name(program, target.id, function_around(program, target)) if isinstance(target, ast.Name) else None


def loads_of_container(program, node):
    """Of what holds numbers; None where it may have another name, too."""
    if not isinstance(node, ast.Name):
        return loads_of(program, node) if isinstance(node, (ast.Attribute, ast.Subscript)) else None
    function = scope_of(program, node.id, function_around(program, node))
    assignments = [one for one in (ast.walk(function) if function else program.nodes) if isinstance(one, ast.Assign)]
    bound = [one.value for one in assignments if any(getattr(target, "id", "") == node.id for target in targets_in(one))]
    made = (ast.Dict, ast.List, ast.Set, *Comprehension)
    if not bound or not all(isinstance(value, made) or name_called(value) in MAKERS for value in bound):
        return None
    return loads_of_name(program, node.id, function)


def targets_in(assignment):
    return [one for target in assignment.targets for one in (target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target])]


def scope_of(program, name, function):
    """The function of which it is a local name; None: it is the file's."""
    if function is None:
        return None
    nodes = list(ast.walk(function))
    if any(isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names for node in nodes):
        return None
    stored = any(isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store) for node in nodes)
    return function if stored or any(isinstance(node, ast.arg) and node.arg == name for node in nodes) else None


def loads_of_name(program, name, function):
    """In the function where it is a local name of it, else in the whole file. None: other files may read it."""
    scope = scope_of(program, name, function)
    if scope is None and not program.is_script:
        return None
    nodes = list(ast.walk(scope)) if scope else program.nodes
    return [node for node in nodes if isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)]


def calls_any(program, names):
    return any(name_called(one) in names for one in program.nodes)


def holders_after_call(program, call, argument):
    name, is_method = name_called(call), isinstance(call.func, ast.Attribute)
    called = [function for function in program.functions if function.name == name]
    if called:
        return together(parameter(program, function, call, argument) for function in called)
    if name == "print" or (name == "save" and root_of(call.func) in program.of_torch and not calls_any(program, ("load",))):
        return []
    if is_method and name in KEEPERS and (held := loads_of_container(program, call.func.value)) is not None:
        return [*held, call]
    if name in (MATHEMATICS if root_of(call.func) in ("math", "np", "numpy", "statistics") else METHODS if is_method else FUNCTIONS):
        return [call]
    is_logger = is_method and isinstance(program.parents[call], ast.Expr) and name in LOGGERS
    return [] if is_logger and root_of(call.func) not in program.of_torch else None


def parameter(program, function, call, argument):
    names = [one.arg for one in function.args.posonlyargs + function.args.args]
    if isinstance(call.func, ast.Attribute) and names[:1] in (["self"], ["cls"]):
        del names[0]
    if any(isinstance(one, ast.Starred) for one in call.args):
        return None
    name = argument if argument in names else names[argument] if isinstance(argument, int) and argument < len(names) else None
    return loads_of_name(program, name, function) if name else None


def calls_of(program, function):
    """None: it is called from elsewhere, or handed over."""
    if function is None or not program.is_script:
        return None
    if any(getattr(decorator, "id", "") == "property" for decorator in function.decorator_list):
        return [node for node in nodes_of(program, ast.Attribute) if node.attr == function.name] or None
    calls = [node for node in program.nodes if name_called(node) == function.name]
    called = {call.func for call in calls}
    names = [node for node in nodes_of(program, (ast.Name, ast.Attribute)) if getattr(node, "id", getattr(node, "attr", "")) == function.name]
    return calls if calls and all(node in called for node in names) else None


def function_around(program, node):
    while node in program.parents and not isinstance(node, Function):
        node = program.parents[node]
    return node if isinstance(node, Function) else None


def together(lists):
    lists = list(lists)
    return None if None in lists else [node for one in lists for node in one]


def name_called(node):
    function = getattr(node, "func", None) if isinstance(node, ast.Call) else None
    return getattr(function, "id", getattr(function, "attr", ""))


def root_of(node):
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return getattr(node, "id", "")
