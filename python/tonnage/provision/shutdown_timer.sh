# Ends the machine at the last whole minute before $ends_at (seconds since 1970), even if the launching
# command is gone by then, and after a reboot, too.
set -eu
boot=/var/lib/cloud/scripts/per-boot
mkdir -p "$boot"
{
    echo '#!/bin/bash'
    echo "ends_at=$ends_at"
    echo 'left=$((ends_at - $(date +%s)))'
    echo 'shutdown -h +$((left > 0 ? left / 60 : 0))'
} > "$boot/tonnage-lifetime"
chmod +x "$boot/tonnage-lifetime"
"$boot/tonnage-lifetime"
