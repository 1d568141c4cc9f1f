#pragma once

#include <ATen/ATen.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace peakbench::values {

// A choice that PyTorch leaves open: which of several results a card gives. A value that depends on
// it is known if the card chooses as the CPU does. The choice is reported when the host reads the
// value.

struct Choice {
  std::string operation;
  const char* what = "";  // a constant: "the order of equal keys"
  bool unsure = false;    // makes some of a value's bytes unknown; the others do not depend on it

  bool operator==(const Choice&) const = default;
};

class Choices {
 public:
  bool empty() const { return choices_.empty(); }
  void add(const Choice& choice);
  void add(const Choices& others);
  // Enters them in the ledger, as conditions, where bytes are read that are `known` or not. Takes
  // Python's lock: with no lock held.
  void tell(bool known) const;

 private:
  std::vector<Choice> choices_;
};

// What a card may round otherwise than the CPU: a value between two others on any card.

struct Rounded {
  Choices by;  // the first operator that rounded; empty: none, a card has the CPU's value
  // Bounds of the value, with as many bytes each. Undefined: unknown.
  at::Tensor low, high;

  bool any() const { return !by.empty(); }
  bool is_bounded() const { return low.defined(); }
};

// Values of small device tensors: what was copied from the host, and what operators make of it. An
// operator is recorded when PyTorch calls it and computed on the CPU when the host reads.

struct Operator;
struct Node;
struct Patch;

// A plausible value for an unknown one: routing is balanced, and checks of arguments pass.
// Floating-point numbers are drawn from N(0, 1), a single one is 1.
struct Substitute {
  at::ScalarType dtype = at::kFloat;
  std::optional<double> element;  // what each of them is, where it is no number that is drawn
  std::int64_t range = 1;         // integers are drawn from 0 to range - 1
  std::int64_t most = 0;          // the largest integer that guesses reach; 0: unknown
};

// What an unknown value can be used for.
enum class Purpose : std::uint8_t { any, finite_check, seed };

// Bytes: begin and end, in order.
using Ranges = std::vector<std::pair<std::size_t, std::size_t>>;

// The bytes of one storage between two writes; never changed once it is computed, so that recorded
// operators can hold it.
struct Value {
  std::size_t bytes = 0;
  bool substituted = false;  // rests on a substitute, as far as is known before it is computed
  Ranges unsure;             // which of its bytes then do; empty: any of them
  Purpose purpose = Purpose::any;
  int depth = 0;                   // of the recorded operators that lead to it
  std::uint64_t foreign_work = 0;  // kernels launched outside of operators by then
  Substitute substitute;           // where there is no node
  at::Tensor data;                 // once computed: `bytes` bytes
  std::shared_ptr<Node> node;      // until then, if an operator makes it
  std::shared_ptr<Patch> patch;    // until then, if bytes were put into another value
  Ranges unwritten;                // bytes of new memory that have never been written
  Ranges chosen;                   // bytes that a further run has read, which stay (outcomes.h)
  Choices choices;                 // once computed: choices left open by PyTorch that it depends on
  Rounded rounded;                 // once computed: what it may be on a card
};
using ValuePtr = std::shared_ptr<Value>;

// A tensor in a storage.
struct View {
  at::ScalarType dtype = at::kByte;
  std::int64_t offset_bytes = 0;
  c10::SmallVector<std::int64_t, 5> sizes, strides;
  bool conjugate = false, negative = false;
};
View view_of(const at::Tensor& tensor);

struct Input {
  int argument = 0;
  int index = -1;   // in a list; -1: the argument itself
  int part = -1;    // of a sparse tensor: the index of its dense tensor
  int target = -1;  // the output that is written in place of it
  ValuePtr value;
  View view;
  at::Tensor constant;  // from the host, instead of a value
  // A device tensor that has no value yet: its storage.
  std::uint64_t absent_base = 0;
  std::size_t absent_bytes = 0;
};

// A sparse argument, whose parts are inputs.
struct Sparse {
  int argument = 0, index = -1;
  at::Layout layout = at::kSparse;
  c10::SmallVector<std::int64_t, 5> sizes;
  bool coalesced = false;
};

struct Output {
  int result = -1;  // which of the operator's results; -1: a target
  int index = -1;   // in a list
  int part = -1;    // of a sparse result
  ValuePtr before;  // of a target that is not overwritten wholly
  View view;
  std::size_t bytes = 0;
  std::weak_ptr<Value> value;
  bool arbitrary = false;          // nothing is known of `before`
  std::size_t begin = 0, end = 0;  // of what is overwritten in `before`, where that is one piece
  int shared = -1;  // with this earlier output: both are in one storage, whose value is that one's
};

// A call of an operator that may still have to be computed.
struct Node {
  const Operator* op = nullptr;
  std::vector<c10::IValue> arguments;  // without the tensors
  std::vector<int> list_sizes;         // -1: no list of tensors
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  std::vector<Sparse> sparse;
  std::uint64_t sequence = 0;
  bool substituted = false;
  bool random = false;  // draws numbers
  bool tf32 = false;    // its products may be rounded to TF32
  int depth = 0;
};

// Bytes that another process sends; see patch.h.
class Arrival;

// A value with some of its bytes replaced: by those of another value, or by an arrival's.
struct Patch {
  ValuePtr before;  // null: new memory
  std::size_t offset = 0, bytes = 0;
  ValuePtr source;
  std::size_t source_offset = 0;
  std::shared_ptr<Arrival> arrival;
};

// Bytes in place of unknown ones.
at::Tensor made_up(std::size_t bytes, const Substitute& what);
// A value that is there already.
ValuePtr known(at::Tensor bytes);
// An unknown value.
ValuePtr unknown(std::size_t bytes, const Substitute& substitute);
// Computes it, and what it needs, unless done. Afterwards `data` is defined.
void compute(Value& value);
// Whether the outputs are the same whatever the targets held before; then they are computed, and
// known. Nothing else of the call may be unknown.
bool settle(Node& node);
// If all unknown inputs of a node are checks for finite values, its output is one, too.
Purpose purpose_of(const Node& node);
// The same of a value that bytes of another are put into.
Purpose purpose_of_both(const Value& value, const Value& source);
// Calls the operator at once; false when it cannot be. `substituted` is set where an input is.
bool call(const Node& node, std::vector<c10::IValue>& stack);

// Something else than a refusal of PyTorch's stopped a computation: a fault of the program's
// figures.
void tell_of_failure(const std::exception& error);

// The choices that a node's inputs depend on, once they are computed.
Choices choices_of(const Node& node);

at::Tensor tensor_in(const at::Tensor& bytes, const View& view);

// Below autograd, autocast, Python and torch.jit's tracing, and unseen by recording.
class Unseen {
 public:
  Unseen();
  Unseen(const Unseen&) = delete;
  Unseen& operator=(const Unseen&) = delete;
  ~Unseen();
  static bool now();

 private:
  at::DisableRecordFunctionGuard no_record_;
  at::NoGradGuard no_grad_;
  int threads_ = 0;  // OpenMP's for this thread, before
  c10::impl::ExcludeDispatchKeyGuard no_autograd_, no_autocast_, no_python_, no_tracing_;
};

}  // namespace peakbench::values
