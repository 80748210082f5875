set multiplot layout 1,2
set logscale xy
set format x "10^%T"
set xlabel "locks"
set ylabel "heap of the server in MB"
plot from using "locks":"server heap: all locks held [MB]" title "all held", \
     "" using "locks":"server heap: no lock held [MB]" title "none held", \
     "" using "locks":"server heap: after the directories were removed [MB]" title "directories removed"
set ylabel "seconds"
plot from using "locks":(column("locks") / column("new locks acquired a second")) title "to acquire all", \
     "" using "locks":"find_locks: all locks held [s]" title "find\\_locks, all held", \
     "" using "locks":"find_locks: no lock held [s]" title "find\\_locks, none held"
unset multiplot
