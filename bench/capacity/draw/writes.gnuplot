set multiplot layout 1,2
set logscale xy
set xlabel "callers, each with locks of its own"
callers(n) = column("servers") == n ? column("callers") : NaN
name(n) = sprintf("%d server%s", n, n > 1 ? "s" : "")
set ylabel "writes a second (create, delete)"
plot for [n=1:5:2] from using (callers(n)):"writes a second" title name(n)
set ylabel "time to acquire in ms"
plot for [n=1:5:2] from using (callers(n)):"time to acquire [ms]" title name(n)
unset multiplot
