#include "isa.h"

#include <cstdlib>
#include <stdexcept>
#include <string>

namespace recurra {
namespace {

struct Isa {
  const char* name;
  bool (*runs_here)();
};

bool always() { return true; }

#if defined(__x86_64__) && defined(__GNUC__)
// Features are asked for one by one: the names of whole levels came with GCC 12 and clang 18 only. F16C, LZCNT and
// MOVBE belong to v3 too, but older compilers cannot ask for them; no CPU has AVX2, FMA and BMI2 without them.
bool has_x86_64_v2() {
  return __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("sse4.2") &&
         __builtin_cpu_supports("popcnt");
}
bool has_x86_64_v3() {
  return has_x86_64_v2() && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}
bool has_x86_64_v4() {
  return has_x86_64_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
bool has_x86_64_v4_bf16() { return has_x86_64_v4() && __builtin_cpu_supports("avx512bf16"); }
#else
bool has_x86_64_v2() { return false; }
bool has_x86_64_v3() { return false; }
bool has_x86_64_v4() { return false; }
bool has_x86_64_v4_bf16() { return false; }
#endif

// NEON is part of every 64-bit Arm.
bool has_neon() {
#if defined(__aarch64__)
  return true;
#else
  return false;
#endif
}

// Fastest first; generic runs anywhere and stays last.
constexpr Isa isas[] = {
    {"x86-64-v4-bf16", has_x86_64_v4_bf16}, {"x86-64-v4", has_x86_64_v4}, {"x86-64-v3", has_x86_64_v3},
    {"x86-64-v2", has_x86_64_v2},           {"neon", has_neon},           {"generic", always},
};

std::string names(bool only_those_here) {
  std::string list;
  for (const Isa& isa : isas) {
    if (only_those_here && !isa.runs_here()) continue;
    if (!list.empty()) list += ", ";
    list += isa.name;
  }
  return list;
}

}  // namespace

const char* selected_isa() {
  const char* env = std::getenv("RECURRA_ISA");
  const std::string wanted = env == nullptr ? "" : env;
  for (const Isa& isa : isas) {
    if (wanted.empty() ? isa.runs_here() : wanted == isa.name) {
      if (isa.runs_here()) return isa.name;
      throw std::invalid_argument("recurra: RECURRA_ISA must name an instruction set that this machine has (" +
                                  names(true) + "), got '" + wanted + "'");
    }
  }
  throw std::invalid_argument("recurra: RECURRA_ISA must be one of " + names(false) + ", got '" + wanted + "'");
}

}  // namespace recurra
