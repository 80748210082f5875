set multiplot layout 1,2
set logscale y
set xlabel "delay in each direction in ms"
delay(n) = column("servers") == n ? column("delay in each direction [ms]") : NaN
name(n) = sprintf("%d server%s", n, n > 1 ? "s" : "")
set ylabel "holds a second, one contended lock"
plot for [n=1:5:2] from using (delay(n)):"one contended lock: holds a second" title name(n)
set ylabel "holds a second, 64 callers"
plot for [n=1:5:2] from using (delay(n)):"64 callers: holds a second" title name(n)
unset multiplot
