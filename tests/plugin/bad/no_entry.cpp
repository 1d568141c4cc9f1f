// A plugin whose author forgot the entry.
#include "peakbench/plugin.h"
