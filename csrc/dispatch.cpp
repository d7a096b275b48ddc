#include <cstring>

#include "isa.h"
#include "kernels.h"

namespace recurra {

#define RECURRA_DECLARE(name)   \
  namespace name {              \
  extern const Kernels kernels; \
  }
#if defined(__x86_64__)
RECURRA_DECLARE(x86_64_v2)
RECURRA_DECLARE(x86_64_v3)
RECURRA_DECLARE(x86_64_v4)
#else
RECURRA_DECLARE(portable)
#endif

const Kernels& selected_kernels() {
#if defined(__x86_64__)
  const char* isa = selected_isa();
  if (std::strcmp(isa, "x86-64-v4") == 0) return x86_64_v4::kernels;
  if (std::strcmp(isa, "x86-64-v3") == 0) return x86_64_v3::kernels;
  return x86_64_v2::kernels;  // generic too: no 64-bit x86 that runs today's Python lacks what these kernels use
#else
  selected_isa();  // for its complaint about RECURRA_ISA
  return portable::kernels;
#endif
}

}  // namespace recurra
