#include "nccl/reduce.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <type_traits>

namespace peakbench::emulator::nccl {
namespace {

struct Half {
  using Number = float;
  std::uint16_t bits;
};
struct Bfloat {
  using Number = float;
  std::uint16_t bits;
};

float number(Bfloat value) { return std::bit_cast<float>(std::uint32_t{value.bits} << 16); }

float number(Half value) {
  const std::uint32_t sign = (value.bits & 0x8000U) << 16;
  const std::uint32_t exponent = (value.bits >> 10) & 31U, fraction = value.bits & 0x3ffU;
  if (exponent == 0)
    return std::copysign(std::ldexp(static_cast<float>(fraction), -24), sign ? -1.0F : 1.0F);
  const std::uint32_t wide = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | (wide << 23) | (fraction << 13));
}

// To the nearest, ties to even.
void store(float value, Bfloat* out) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) {
    out->bits = 0x7fff;
  } else {
    out->bits = static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
  }
}

void store(float value, Half* out) {
  const std::uint32_t sign = std::signbit(value) ? 0x8000U : 0;
  const float size = std::fabs(value);
  std::uint32_t bits;
  if (std::isnan(value)) {
    bits = 0x7fff;
  } else if (size >= 65520) {  // what rounds past the largest
    bits = 0x7c00;
  } else if (size < 6.103515625e-05F) {  // subnormal: in steps of 2^-24
    bits = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(size, 24)));
  } else {
    const auto wide = std::bit_cast<std::uint32_t>(size);
    bits = (wide + 0xfff + ((wide >> 13) & 1) - (112U << 23)) >> 13;
  }
  out->bits = static_cast<std::uint16_t>(sign | bits);
}

template <typename Type>
auto number(Type value) {
  return value;
}
template <typename Type>
void store(Type value, Type* out) {
  *out = value;
}

template <typename Number>
Number together(Number a, Number b, int reduction) {
  // Integers wrap, as on a card.
  using Wrapping = std::conditional_t<std::is_integral_v<Number>, std::uint64_t, Number>;
  switch (reduction) {
    case kProduct:
      return static_cast<Number>(static_cast<Wrapping>(a) * static_cast<Wrapping>(b));
    case kMax:
      return std::max(a, b);
    case kMin:
      return std::min(a, b);
    default:
      return static_cast<Number>(static_cast<Wrapping>(a) + static_cast<Wrapping>(b));
  }
}

template <typename Number>
Number divided(Number sum, std::size_t ranks) {
  using Wide =
      std::conditional_t<std::is_floating_point_v<Number>, Number,
                         std::conditional_t<std::is_signed_v<Number>, std::int64_t, std::uint64_t>>;
  return static_cast<Number>(static_cast<Wide>(sum) / static_cast<Wide>(ranks));
}

template <typename Type>
Type element(const char* from, std::uint64_t index) {
  Type value;
  std::memcpy(&value, from + index * sizeof value, sizeof value);
  return value;
}

template <typename Type>
void reduce_as(const std::vector<const char*>& parts, std::uint64_t bytes, int reduction,
               char* to) {
  for (std::uint64_t i = 0; i < bytes / sizeof(Type); ++i) {
    auto result = number(element<Type>(parts[0], i));
    for (std::size_t rank = 1; rank < parts.size(); ++rank)
      result = together(result, number(element<Type>(parts[rank], i)), reduction);
    if (reduction == kAverage) result = divided(result, parts.size());
    Type out;
    store(result, &out);
    std::memcpy(to + i * sizeof out, &out, sizeof out);
  }
}

// By ncclDataType_t.
constexpr decltype(&reduce_as<float>) kByType[] = {
    reduce_as<std::int8_t>,   reduce_as<std::uint8_t>, reduce_as<std::int32_t>,
    reduce_as<std::uint32_t>, reduce_as<std::int64_t>, reduce_as<std::uint64_t>,
    reduce_as<Half>,          reduce_as<float>,        reduce_as<double>,
    reduce_as<Bfloat>};

}  // namespace

std::size_t element_bytes(int type) {
  constexpr std::size_t kBytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return type >= 0 && type < 12 ? kBytes[type] : 0;
}

bool is_floating(int type) { return type >= 6; }

bool reduce(const std::vector<const char*>& parts, std::uint64_t bytes, int type, int reduction,
            char* to) {
  if (reduction < kSum || reduction > kAverage) return false;
  if (type < 0 || type >= static_cast<int>(std::size(kByType))) return false;
  kByType[type](parts, bytes, reduction, to);
  return true;
}

}  // namespace peakbench::emulator::nccl
