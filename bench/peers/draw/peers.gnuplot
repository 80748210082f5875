# The picture of docs/peers.md. `from`: the CSV file; `to`: the picture.
set terminal svg size 1000,380 font "sans-serif,12" background rgb "white" noenhanced
set output to
set datafile separator comma
set datafile commentschars "#"
set datafile columnheaders
set style fill solid border -1
set boxwidth 0.7
set linetype 1 linecolor rgb "#0072b2"
set linetype 2 linecolor rgb "#d55e00"
set linetype 3 linecolor rgb "#009e73"
set linetype 4 linecolor rgb "#56b4e9"
set grid ytics linecolor rgb "#dddddd"
set border 3
set xtics nomirror rotate by -40
set ytics nomirror
set xrange [-0.6:*]
set offsets 0, 0.6, 0, 0
set logscale y
set multiplot layout 1,3
set title "free lock: acquire and release"
set ylabel "microseconds"
set key top left
set yrange [10:*]
plot from using 0:"free_p99_us":xtic(1) with boxes linetype 4 title "99th percentile", \
     from using 0:"free_p50_us" with boxes linetype 1 title "median"
unset key
set title "eight contenders: hand-overs"
set ylabel "a second"
plot from using 0:"hand_overs_per_s":xtic(1) with boxes linetype 3
set title "eight contenders: fairness"
set ylabel "longest wait / median wait"
set yrange [0.5:*]
plot from using 0:"longest_to_median":xtic(1) with boxes linetype 2
unset multiplot
