"""What a program does with a number that it reads from the card, as far as its source shows.

It runs inside the program, in the program's own interpreter, and keeps nothing: objects that stay would move the program's garbage
collections, which free tensors (callers.cpp).
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
METERS = {"add", "record", "report", "track", "update"}  # those whose object may give back what it was told
HIDING = {"eval", "exec", "globals", "locals", "vars"}  # whoever names them does what its source does not show
HIDING_ATTRIBUTES = {"__dict__", "__globals__", "_getframe", "f_back", "f_globals", "f_locals"}
HIDING_MODULES = {"__main__", "inspect"}
NAMESPACES = {"Namespace", "SimpleNamespace"}  # make objects that nobody else has
SPECIAL = {"__delattr__", "__getattr__", "__getattribute__", "__setattr__"}  # methods that run where an attribute is read or set
# Decorators that do nothing with what they hold.
DECORATORS = {"cached_property", "classmethod", "dataclass", "deleter", "enable_grad", "inference_mode", "no_grad", "property", "setter", "staticmethod"}
SHOWN_BY = {"format", "isinstance", "print", "repr", "str"}  # keep nothing of an object
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
    """Whether it is what was started, and no other file uses what it names: none imports it, and none of the user's names __main__."""
    if getattr(sys.modules.get("__main__"), "__file__", None) != file:
        return False
    files = other_files()
    return file not in files and not any(names_main(source_of(other) or b"") for other in files if is_of_the_user(other))


def other_files():
    """Of the modules but for what was started, which multiprocessing gives a second name."""
    main = sys.modules.get("__main__")
    return {getattr(module, "__file__", None) for module in list(sys.modules.values()) if module is not main}


def names_main(source):
    """Not only to ask whether it was started itself."""
    return source.count(b"__main__") > source.count(b'__name__ == "__main__"') + source.count(b"__name__ == '__main__'")


def is_of_the_user(file):
    """Neither of an installed package nor of Python itself."""
    own = getattr(sys.modules.get("os"), "__file__", "").rpartition("/")[0] + "/"
    return isinstance(file, str) and file.endswith(".py") and "-packages/" not in file and "/lib/peakbench/" not in file and not file.startswith(own)


def cell_of(file):
    """Of a notebook: other cells may use what this one names."""
    lines = getattr(sys.modules.get("linecache"), "cache", {}).get(file, ())
    return "".join(lines[2]) if len(lines) > 2 else ""


def program_of(tree):
    """No class of ours: one refers to itself, and so stays until a collection."""
    program = SimpleNamespace(nodes=list(ast.walk(tree)), is_script=False)
    program.parents = {child: node for node in program.nodes for child in ast.iter_child_nodes(node)}
    program.functions = nodes_of(program, Function)
    program.classes = nodes_of(program, ast.ClassDef)
    imports = [(getattr(node, "module", None), alias) for node in nodes_of(program, (ast.Import, ast.ImportFrom)) for alias in node.names]
    program.imported = {(alias.asname or alias.name).split(".")[0]: module or alias.name for module, alias in imports}
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
    own = {function.name for function in program.functions} | set(program.imported)
    own.update(node.id for node in nodes_of(program, ast.Name) if isinstance(node.ctx, ast.Store))
    while True:
        parent = program.parents[node]
        if isinstance(parent, ast.Call) and parent.func is not node and isinstance(parent.func, ast.Name) and parent.func.id not in own:
            if parent.func.id == "print":
                shows = all(root_of(one.value) == "sys" for one in parent.keywords if one.arg in ("file", None))
                return shows and isinstance(program.parents[parent], ast.Expr)
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
    hides = any(is_hiding(one) for one in program.nodes)
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


def is_hiding(node):
    if isinstance(node, ast.Attribute):
        return node.attr in HIDING_ATTRIBUTES or (node.attr == "modules" and root_of(node) == "sys")
    return (isinstance(node, ast.Name) and node.id in HIDING) or (isinstance(node, ast.alias) and node.name in HIDING_MODULES)


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
        loads = loads_of_attribute(program, target.attr)
        return loads if loads and is_private(program, target) else None
    return loads_of_name(program, target.id, function_around(program, target)) if isinstance(target, ast.Name) else None


def loads_of_attribute(program, name):
    return [node for node in nodes_of(program, ast.Attribute) if node.attr == name and isinstance(node.ctx, ast.Load)]


def is_private(program, attribute):
    """Whether no other file reads it: none has the object, and setting or reading it runs no code."""
    if not program.is_script or calls_any(program, ("getattr", "attrgetter", "setattr")) or not isinstance(attribute.value, ast.Name):
        return False
    classes = classes_of(program, attribute.value)
    if classes:
        return are_private(program, classes, attribute.attr)
    bound = values_bound(program, attribute.value)
    loads = loads_of_name(program, attribute.value.id, function_around(program, attribute))
    return bool(bound) and all(name_called(value) in NAMESPACES for value in bound) and loads is not None and stay_here(program, loads, ())


def are_private(program, classes, attribute=""):
    """Whether no other file has an object of theirs, or the class itself, or a part in it."""
    family = family_of(program, classes)
    own = not any(is_of_others(program, one) or runs_code(one, attribute) for one in family)
    return own and stay_here(program, objects_of(program, family), family)


def classes_of(program, name):
    """This file's classes of which it is an object, or which it is."""
    function = function_around(program, name)
    while function and not is_first_argument(program, function, name.id):
        function = function_around(program, program.parents[function])
    if function:
        return [program.parents[function]]
    named = {one.name: one for one in program.classes}
    if len(named) < len(program.classes):  # which of two it is
        return []
    if name.id in named:
        return [named[name.id]] if not values_bound(program, name) else []
    made = [named.get(getattr(getattr(value, "func", None), "id", "")) for value in values_bound(program, name)]
    return made if None not in made else []


def is_first_argument(program, function, name):
    first = [one.arg for one in function.args.posonlyargs + function.args.args][:1]
    is_other = any(getattr(node, "id", "") == name and isinstance(node.ctx, ast.Store) for node in ast.walk(function) if isinstance(node, ast.Name))
    return isinstance(program.parents[function], ast.ClassDef) and first == [name] and not is_other and "staticmethod" not in decorators_of(function)


def family_of(program, classes):
    """With the classes that they are made of, and those made of them."""
    family = list(classes)
    for one in family:
        family += [other for other in program.classes if other not in family and (other.name in bases_of(one) or one.name in bases_of(other))]
    return family


def bases_of(one):
    return [getattr(base, "id", "") for base in one.bases]


def is_of_others(program, one):
    """Whether code of another file has a part in the class."""
    own = {"object", *(other.name for other in program.classes)}
    is_wrapped = any(is_of_unknown_code(node) for node in (one, *one.body) if isinstance(node, (ast.ClassDef, *Function)))
    return bool(one.keywords) or any(name not in own for name in bases_of(one)) or is_wrapped


def is_of_unknown_code(definition):
    """Whether a decorator's code runs around the function or the class."""
    return not decorators_of(definition) <= DECORATORS


def decorators_of(definition):
    return {name_called(node) or getattr(node, "id", getattr(node, "attr", "")) for node in definition.decorator_list}


def runs_code(one, attribute):
    """Whether code runs where an object's attribute is read or set: a property, a descriptor, a method of SPECIAL."""
    functions = {node.name for node in one.body if isinstance(node, Function)}
    assignments = [node for node in one.body if isinstance(node, (ast.Assign, ast.AnnAssign))]
    made = [node.value for node in assignments if attribute in [getattr(target, "id", "") for target in targets_in(node)]]
    return bool(functions & (SPECIAL | {attribute})) or any(isinstance(value, (ast.Call, ast.Name, ast.Attribute)) for value in made)


def objects_of(program, family):
    """The expressions that are an object of theirs, or one of them."""
    names = {one.name for one in family}
    found = [node for node in program.nodes if name_called(node) in names or (isinstance(node, ast.Name) and node.id in names)]
    for function in (node for one in family for node in one.body if isinstance(node, Function)):
        first = [one.arg for one in function.args.posonlyargs + function.args.args][:1]
        found += loads_of_name(program, first[0], function) if first else []
    return found


def stay_here(program, objects, family):
    """Whether none of these expressions gives its object to code of another file."""
    methods = {node.name for one in family for node in one.body if isinstance(node, Function) and not is_property(node)}
    seen, left = set(), list(objects)
    while left:
        node = left.pop()
        if node in seen:
            continue
        seen.add(node)
        others = other_names_of(program, node, methods)
        if others is None:
            return False
        left += others
    return True


def other_names_of(program, node, methods):
    """The expressions that are the same object next. None: another file may have it."""
    parent = program.parents[node]
    if isinstance(parent, ast.Attribute):
        call = program.parents[parent]
        is_kept = parent.attr in methods and not (isinstance(call, ast.Call) and call.func is parent)
        return None if is_kept or (parent.attr.startswith("__") and parent.attr.endswith("__") and parent.attr not in methods) else []
    if isinstance(parent, (ast.Expr, ast.Delete, ast.FormattedValue, ast.arg)) or (isinstance(parent, ast.ClassDef) and node in parent.bases):
        return []
    if isinstance(parent, ast.AnnAssign) and parent.annotation is node:
        return []
    if isinstance(parent, Function) and parent.returns is node:
        return []
    if isinstance(parent, (ast.Assign, ast.AnnAssign)) and parent.value is node:
        targets = targets_in(parent)
        return together(loads_of_name(program, one.id, function_around(program, one)) if isinstance(one, ast.Name) else None for one in targets)
    call, argument = (program.parents[parent], parent.arg) if isinstance(parent, ast.keyword) else (parent, None)
    if not isinstance(call, ast.Call):
        return None
    if call.func is node:
        return []
    called = [function for function in program.functions if function.name == name_called(call)]
    if called and isinstance(call.func, ast.Name):
        return together(parameter(program, function, call, argument or call.args.index(node)) for function in called)
    return [] if isinstance(call.func, ast.Name) and call.func.id in SHOWN_BY else None


def is_property(function):
    return bool(decorators_of(function) & {"property", "cached_property"})


def loads_of_container(program, node):
    """Of what holds numbers; None where it may have another name, too."""
    made = (ast.Dict, ast.List, ast.Set, *Comprehension)
    if isinstance(node, ast.Subscript):
        return loads_of(program, node)
    bound = values_bound(program, node)
    if not bound or not all(isinstance(value, made) or name_called(value) in MAKERS for value in bound):
        return None
    if isinstance(node, ast.Attribute):
        return loads_of(program, node)
    return loads_of_name(program, node.id, scope_of(program, node.id, function_around(program, node)))


def values_bound(program, node):
    """What is assigned to a name where it is one of a function or of the file, or to all attributes of that name."""
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return []
    is_name = isinstance(node, ast.Name)
    kind, name = ("id", node.id) if is_name else ("attr", node.attr)
    function = scope_of(program, name, function_around(program, node)) if is_name else None
    nodes = list(ast.walk(function)) if function else program.nodes
    targets = {target: one.value for one in nodes if isinstance(one, (ast.Assign, ast.AnnAssign)) for target in targets_in(one)}
    stored = [one for one in nodes if isinstance(one, type(node)) and getattr(one, kind) == name and isinstance(one.ctx, ast.Store)]
    bound = [targets.get(one) for one in stored if not isinstance(program.parents[one], ast.AugAssign)]  # None: by a loop, say
    is_argument = is_name and function and any(isinstance(one, ast.arg) and one.arg == name for one in nodes)
    return [*bound, None] if is_argument or (is_name and not function and name in program.imported) else bound


def targets_in(assignment):
    targets = getattr(assignment, "targets", None) or [assignment.target]
    return [one for target in targets for one in (target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target])]


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
    if called and calls_this_file(program, call, called) and not any(is_of_unknown_code(function) for function in called):
        return together(parameter(program, function, call, argument) for function in called)
    if called:
        return None
    if name == "print":
        return None if any(is_from_a_file_of_the_user(program, one) for one in (call.func, *(word.value for word in call.keywords))) else []
    if name == "save" and root_of(call.func) in program.of_torch and not may_be_loaded(program):
        return []
    if is_method and name in KEEPERS and (held := loads_of_container(program, call.func.value)) is not None:
        return [*held, call]
    if name in (MATHEMATICS if root_of(call.func) in ("math", "np", "numpy", "statistics") else METHODS if is_method else FUNCTIONS):
        return [call]
    is_logger = is_method and isinstance(program.parents[call], ast.Expr) and name in LOGGERS
    if not is_logger or root_of(call.func) in program.of_torch or is_from_a_file_of_the_user(program, call.func.value):
        return None
    return told_by(program, call.func.value) if name in METERS else []


def calls_this_file(program, call, functions):
    """Whether it calls one of them, and nothing else by that name."""
    if isinstance(call.func, ast.Name):
        return not values_bound(program, call.func)
    family = family_of(program, classes_of(program, call.func.value)) if isinstance(call.func.value, ast.Name) else []
    return any(program.parents[one] in family for one in functions) and not any(is_of_others(program, one) for one in family)


def may_be_loaded(program):
    """What is saved in a file: by this script, or by a file that it uses."""
    return calls_any(program, ("load",)) or any(b"load" in (source_of(file) or b"") for file in other_files() if is_of_the_user(file))


def is_from_a_file_of_the_user(program, node):
    """Whether it is imported from there, or made by what is: its methods are code that this source does not show."""
    roots = {root_of(node), *(root_of(value) for value in values_bound(program, node) if value)}
    modules = [sys.modules.get(program.imported[root]) for root in roots if root in program.imported]
    return any(is_of_the_user(getattr(module, "__file__", None)) for module in modules)


def told_by(program, meter):
    """Where a meter, which adds up what it is told, gives that back."""
    while isinstance(meter, ast.Subscript):
        meter = meter.value
    if isinstance(meter, ast.Name):
        loads = loads_of_name(program, meter.id, function_around(program, meter)) or []
    else:
        loads = loads_of_attribute(program, meter.attr) if isinstance(meter, ast.Attribute) else []
    return [one for load in loads for one in given_back(program, load)]


def given_back(program, load):
    node, parent = load, program.parents[load]
    while isinstance(parent, (ast.Attribute, ast.Subscript)) and parent.value is node:
        node, parent = parent, program.parents[parent]
    if isinstance(parent, ast.Call) and parent.func is node:
        return [] if isinstance(program.parents[parent], ast.Expr) else [parent]
    return [node] if isinstance(node.ctx, ast.Load) else []


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
    owner = program.parents[function]
    if is_of_unknown_code(function) or (isinstance(owner, ast.ClassDef) and not are_private(program, [owner])):
        return None
    if is_property(function):
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
