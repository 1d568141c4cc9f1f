#include "peakbench/safetensors.h"

#include <ATen/ATen.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <map>
#include <memory>

#include "peakbench/errors.h"
#include "peakbench/nn.h"
#include "safetensors_header.h"

namespace peakbench {
namespace {

// A file mapped read-only; the mapping ends with the object. It opens the file itself, as
// base/regular_file.h does for the program: a plugin's library is linked with nothing of that.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path) {
    // A pipe would be waited for without O_NONBLOCK.
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat status {};
    if (descriptor < 0 || ::fstat(descriptor, &status) != 0) {
      const std::string why = std::strerror(errno);
      if (descriptor >= 0) ::close(descriptor);
      throw OptionError("weights=" + path + ": cannot be opened (" + why + ")");
    }
    if (!S_ISREG(status.st_mode)) {
      ::close(descriptor);
      throw OptionError("weights=" + path + ": is not a regular file");
    }
    size_ = static_cast<std::size_t>(status.st_size);
    if (size_ > 0) data_ = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor, 0);
    ::close(descriptor);
    if (size_ == 0 || data_ == MAP_FAILED) {
      throw OptionError("weights=" + path + ": is empty or cannot be mapped");
    }
  }
  ~MappedFile() { ::munmap(data_, size_); }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const char* bytes() const { return static_cast<const char*>(data_); }
  std::size_t size() const { return size_; }

 private:
  void* data_ = MAP_FAILED;
  std::size_t size_ = 0;
};

const std::map<std::string, at::ScalarType> kDtypes = {
    {"F64", at::kDouble},    {"F32", at::kFloat}, {"F16", at::kHalf},
    {"BF16", at::kBFloat16}, {"I64", at::kLong},  {"I32", at::kInt},
    {"U8", at::kByte},       {"I8", at::kChar},   {"BOOL", at::kBool}};

std::map<std::string, StoredTensor> read_header(const MappedFile& file, const std::string& path) {
  try {
    return read_safetensors_header({file.bytes(), file.size()});
  } catch (const SafetensorsError& error) {
    throw OptionError("weights=" + path + ": " + error.what());
  }
}

std::string list(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 5;
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kShown; ++i) text += (i ? ", " : "") + names[i];
  if (names.size() > kShown) text += " and " + std::to_string(names.size() - kShown) + " more";
  return text;
}

std::string to_text(c10::IntArrayRef shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

// By their weights, those that are not made yet.
std::map<const at::TensorImpl*, nn::LinearLayer*> waiting_layers(torch::nn::Module& module) {
  std::map<const at::TensorImpl*, nn::LinearLayer*> layers;
  for (const auto& one : module.modules(/*include_self=*/false))
    if (auto* layer = dynamic_cast<nn::LinearLayer*>(one.get());
        layer != nullptr && layer->has_waiting_weight())
      layers[layer->weight.unsafeGetTensorImpl()] = layer;
  return layers;
}

}  // namespace

void load_safetensors(torch::nn::Module& module, const std::string& path) {
  const auto mapped = std::make_shared<const MappedFile>(path);
  const MappedFile& file = *mapped;
  std::map<std::string, StoredTensor> stored = read_header(file, path);

  std::vector<std::string> missing, wrong;
  std::vector<std::pair<at::Tensor, StoredTensor>> copies;
  const auto match = [&](const std::string& name, const at::Tensor& tensor) {
    const auto found = stored.find(name);
    if (found == stored.end()) {
      missing.push_back(name);
      return;
    }
    if (tensor.sizes() != c10::IntArrayRef(found->second.shape)) {
      wrong.push_back(name + " is " + to_text(found->second.shape) + ", expected " +
                      to_text(tensor.sizes()));
    }
    copies.emplace_back(tensor, found->second);
    stored.erase(found);
  };
  for (const auto& item : module.named_parameters()) match(item.key(), item.value());
  for (const auto& item : module.named_buffers())  // most are made, not stored
    if (stored.contains(item.key())) match(item.key(), item.value());

  std::vector<std::string> extra;
  for (const auto& [name, tensor] : stored) extra.push_back(name);
  if (!missing.empty() || !extra.empty() || !wrong.empty()) {
    std::string message = "weights=" + path + ": does not fit this model.";
    if (!missing.empty()) message += " Missing: " + list(missing) + ".";
    if (!extra.empty()) message += " Extra: " + list(extra) + ".";
    if (!wrong.empty()) message += " Wrong shape: " + list(wrong) + ".";
    throw OptionError(message);
  }

  const auto copy = [mapped](const StoredTensor& source, const at::Tensor& tensor) {
    const at::NoGradGuard no_grad;
    // The mapping is read-only and from_blob takes a plain pointer; copy_ only reads it.
    tensor.copy_(at::from_blob(const_cast<char*>(mapped->bytes() + source.begin), source.shape,
                               at::TensorOptions(kDtypes.at(source.dtype))));
  };
  const auto waiting = waiting_layers(module);
  for (const auto& [tensor, source] : copies) {
    const auto layer = waiting.find(tensor.unsafeGetTensorImpl());
    if (layer == waiting.end())
      copy(source, tensor);
    else
      layer->second->fill_from(
          [copy, source = source](const at::Tensor& weight) { copy(source, weight); });
  }
}

}  // namespace peakbench
