"""``python -m peakbench ...`` is ``peakbench ...``."""

from peakbench._program import main

main()
