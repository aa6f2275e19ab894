# Mounts each blank disk of a node in a directory of its own: /tonnage/local-0, -1, ... those of the
# machine, /tonnage/volume-0, ... network-attached ones, which are known by their size.
# Its input: how many there are ($local_disks, which may be "some", and $volumes) and $volume_bytes.
set -eu
if [ ! -e /run/tonnage-disks ]; then
    own=0
    attached=0
    started=
    for disk in $(lsblk -d -n -p -o NAME | sort -V); do
        case $disk in
            /dev/nvme* | /dev/sd* | /dev/vd* | /dev/xvd*) ;;
            *) continue ;;
        esac
        # A disk in use has more than its name: partitions, a file system, a place in the tree.
        if [ "$(lsblk -n -o NAME,FSTYPE,MOUNTPOINT "$disk" | wc -w)" -ne 1 ]; then
            continue
        fi
        if [ "$(lsblk -d -n -b -o SIZE "$disk" | tr -d ' ')" = "$volume_bytes" ]; then
            directory=/tonnage/volume-$attached
            attached=$((attached + 1))
        elif [ "$local_disks" != 0 ]; then
            directory=/tonnage/local-$own
            own=$((own + 1))
        else
            continue
        fi
        # Few inodes, written now: nothing is left to be done while the job runs. All disks at once.
        sudo mkfs.ext4 -q -F -m 0 -T largefile4 \
            -E lazy_itable_init=0,lazy_journal_init=0,nodiscard "$disk" &
        started="$started $!:$disk:$directory"
    done
    for each in $started; do
        wait "${each%%:*}"
        disk=${each#*:}
        disk=${disk%%:*}
        directory=${each##*:}
        sudo mkdir -p "$directory"
        sudo mount "$disk" "$directory"
        sudo chmod 1777 "$directory"
    done
    # A machine's temporary disk is formatted and mounted by Azure's images. Next to NVMe disks it is
    # small and slow, and left to the system.
    if [ "$local_disks" != 0 ] && [ "$own" = 0 ] && [ -e /dev/disk/azure/resource-part1 ]; then
        partition=$(readlink -f /dev/disk/azure/resource-part1)
        sudo mkdir -p /tonnage/local-0
        sudo mount --bind "$(findmnt -n -o TARGET --source "$partition")" /tonnage/local-0
        sudo chmod 1777 /tonnage/local-0
        own=1
    fi
    planned=$local_disks
    if [ "$planned" = some ] && [ "$own" -gt 0 ]; then
        planned=$own
    fi
    if [ "$own" != "$planned" ] || [ "$attached" != "$volumes" ]; then
        echo "Planned: $local_disks local disks, $volumes volumes; found: $own, $attached" >&2
        exit 1
    fi
    sudo touch /run/tonnage-disks
fi
