#pragma once

// Every shared header opens this inline namespace, whose name differs by instruction set: inline functions that were
// compiled for different sets must not merge when the sets are linked together.
#ifndef RECURRA_ISA
#define RECURRA_ISA portable
#endif
