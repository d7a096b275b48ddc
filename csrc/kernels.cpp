#include "entries.h"

// Compiled once for each instruction set (CMakeLists.txt), which gives RECURRA_ISA its name.
namespace recurra {
inline namespace RECURRA_ISA {

extern const Kernels<float> float_kernels;
const Kernels<float> float_kernels = entries<float>();
extern const Kernels<double> double_kernels;
const Kernels<double> double_kernels = entries<double>();

}  // namespace RECURRA_ISA
}  // namespace recurra
