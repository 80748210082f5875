set multiplot layout 1,2
set logscale xy
set format x "10^%T"
set xlabel "sessions"
set ylabel "requests a second"
plot from using "sessions":"idle: requests a second" title "idle", \
     "" using "sessions":"one lock each: requests a second" title "one lock each"
set ylabel "server: percent of one processor"
plot from using "sessions":"idle: server CPU [%]" title "idle", \
     "" using "sessions":"one lock each: server CPU [%]" title "one lock each"
unset multiplot
