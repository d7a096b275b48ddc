#include <cstring>

#include "isa.h"
#include "kernels.h"

namespace recurra {

#define RECURRA_DECLARE(name)                  \
  namespace name {                             \
  extern const Kernels<float> float_kernels;   \
  extern const Kernels<double> double_kernels; \
  }
#if defined(__x86_64__)
RECURRA_DECLARE(x86_64_v2)
RECURRA_DECLARE(x86_64_v3)
RECURRA_DECLARE(x86_64_v4)
namespace x86_64_v4_bf16 {
extern const Kernels<Bf16> bf16_kernels;
}
#else
RECURRA_DECLARE(portable)
#endif

namespace {

// A table by the name of the instruction set.
#if defined(__x86_64__)
template <class K>
const K* named(const K& v2, const K& v3, const K& v4) {
  const char* isa = selected_isa();
  if (std::strncmp(isa, "x86-64-v4", 9) == 0) return &v4;
  if (std::strcmp(isa, "x86-64-v3") == 0) return &v3;
  return &v2;  // generic too: no 64-bit x86 that runs today's Python lacks what these kernels use
}
#else
template <class K>
const K* named(const K& portable) {
  selected_isa();  // for its complaint about RECURRA_ISA
  return &portable;
}
#endif

}  // namespace

#if defined(__x86_64__)
#define RECURRA_TABLES(name) x86_64_v2::name, x86_64_v3::name, x86_64_v4::name
#else
#define RECURRA_TABLES(name) portable::name
#endif

template <>
const Kernels<float>* selected_kernels<float>() {
  return named(RECURRA_TABLES(float_kernels));
}

template <>
const Kernels<double>* selected_kernels<double>() {
  return named(RECURRA_TABLES(double_kernels));
}

template <>
const Kernels<Bf16>* selected_kernels<Bf16>() {
#if defined(__x86_64__)
  if (std::strcmp(selected_isa(), "x86-64-v4-bf16") == 0) return &x86_64_v4_bf16::bf16_kernels;
#endif
  return nullptr;
}

}  // namespace recurra
