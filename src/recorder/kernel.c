#include "recorder/kernel.h"

__thread uint8_t kernel_gate, kernel_gate_home;
