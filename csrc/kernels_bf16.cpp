#include "entries.h"

// Compiled only for an instruction set with the dot product of bfloat16.
namespace recurra {
inline namespace RECURRA_ISA {

extern const Kernels<Bf16> bf16_kernels;
const Kernels<Bf16> bf16_kernels = entries<Bf16>();

}  // namespace RECURRA_ISA
}  // namespace recurra
