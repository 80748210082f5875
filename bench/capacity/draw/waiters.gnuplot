set multiplot layout 1,2
set logscale xy
set format x "10^%T"
set xlabel "waiters of one session"
set ylabel "memory for a waiter in KiB"
plot from using "waiters":"memory for a waiter [KiB]" notitle
set ylabel "seconds until all had the lock"
plot from using "waiters":"time until all had the lock [s]" notitle linetype 2
unset multiplot
