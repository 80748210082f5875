# What all pictures of docs/capacity.md have in common. `from`: the CSV file; `to`: the picture.
set terminal svg size 900,400 font "sans-serif,12" background rgb "white"
set output to
set datafile separator comma
set datafile commentschars "#"
set datafile columnheaders
set style data linespoints
set pointsize 0.6
set linetype 1 linecolor rgb "#0072b2" linewidth 2 pointtype 7
set linetype 2 linecolor rgb "#d55e00" linewidth 2 pointtype 5
set linetype 3 linecolor rgb "#009e73" linewidth 2 pointtype 9
set linetype 4 linecolor rgb "#cc79a7" linewidth 2 pointtype 11
set grid linecolor rgb "#dddddd"
set key outside bottom center horizontal
set autoscale xfix
set border 3
set xtics nomirror
set ytics nomirror
