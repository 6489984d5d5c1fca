#!/usr/bin/env bash
# Copyright 2026 The vttablet-ext Authors. SPDX-License-Identifier: Apache-2.0
#
# tools/mysql.sh DIR: provides a MySQL 8.0 or newer in DIR, to be used as VT_MYSQL_ROOT.
#
# Nothing is installed on the system and no right of root is needed. The order of preference:
#   1. what an earlier run left in DIR;
#   2. the mysqld of this machine, when it is MySQL (not MariaDB) and new enough. It is copied, since
#      a security profile of the distribution is bound to its path and forbids any data directory but its own;
#   3. packages of the Debian suite "unstable", unpacked, with all libraries that they need. They run
#      through their own loader, so that the C library of the machine does not matter. The archive is the one
#      that the machine's apt is set up with.
# DIR appears only when it is complete.
set -euo pipefail

dest=${1:?usage: tools/mysql.sh DIR}
say() { echo "mysql: $*" >&2; }
die() { say "$*"; exit 1; }

if [[ -x $dest/bin/mysqld ]]; then
  exit 0
fi
mkdir -p "$(dirname "$dest")"
dest=$(cd "$(dirname "$dest")" && pwd)/$(basename "$dest")
work=$(mktemp -d "$dest.tmp.XXXXXX")
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root/bin" "$root/lib/mysql"

finish() {
  local version
  version=$("$root/bin/mysqld" --no-defaults --version) || die "the new mysqld does not run"
  chmod -R a+rX "$root"
  rm -rf "$dest"
  mv "$root" "$dest"
  say "using${version#*mysqld} in $dest"
  exit 0
}

# newEnough MYSQLD: is it a MySQL of version 8.0 or newer?
newEnough() {
  local version
  version=$("$1" --no-defaults --version 2>/dev/null) || return 1
  [[ $version != *MariaDB* && $version =~ Ver\ ([0-9]+)\.[0-9]+ ]] && (( BASH_REMATCH[1] >= 8 ))
}

# option NAME MYSQLD: the value that the server was built with, of its own account.
option() {
  "$2" --no-defaults --verbose --help 2>/dev/null | awk -v name="$1" '$1 == name { print $2; exit }'
}

# 2. the machine's own
for mysqld in "$(command -v mysqld || true)" /usr/sbin/mysqld /usr/local/mysql/bin/mysqld; do
  [[ -n $mysqld && -x $mysqld ]] && newEnough "$mysqld" || continue
  mysqld=$(readlink -f "$mysqld")
  plugins=$(option plugin-dir "$mysqld")
  messages=$(option lc-messages-dir "$mysqld")
  [[ -d $plugins && -d $messages ]] || { say "passing over $mysqld: no plugin or message directory"; continue; }
  cp "$mysqld" "$root/bin/mysqld"
  if ! newEnough "$root/bin/mysqld"; then # its libraries are found beside it: use it where it is
    printf '#!/bin/sh\nexec "%s" "$@"\n' "$mysqld" >"$root/bin/mysqld"
  fi
  client=$(command -v mysql || true)
  [[ -z $client ]] || printf '#!/bin/sh\nexec "%s" "$@"\n' "$client" >"$root/bin/mysql"
  chmod 755 "$root"/bin/*
  # Builds differ in where, below the base directory, they look for these.
  mkdir -p "$root/lib64/mysql" "$root/share"
  for link in lib/plugin lib/mysql/plugin lib64/mysql/plugin; do ln -s "${plugins%/}" "$root/$link"; done
  ln -s "${messages%/}" "$root/share/mysql"
  ln -s "${messages%/}"/* "$root/share/"
  finish
done

# 3. Debian packages
for tool in apt-get dpkg dpkg-deb; do
  command -v "$tool" >/dev/null || die "there is no MySQL 8.0 or newer on this machine, and no $tool to fetch one: install mysqld and try again"
done
apt=$work/apt
mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial" "$apt/empty"
: >"$apt/status"
cat >"$apt/apt.conf" <<EOF
Dir::State "$apt/state";
Dir::State::status "$apt/status";
Dir::Cache "$apt/cache";
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "$apt/empty";
Dir::Etc::preferences "$apt/none";
Dir::Etc::preferencesparts "$apt/empty";
APT::Sandbox::User "$(id -un)";
APT::Install-Recommends "false";
Acquire::Retries "3";
Acquire::Languages "none";
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
#clear DPkg::Pre-Install-Pkgs;
#clear DPkg::Post-Invoke;
EOF
archives=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' 2>/dev/null | grep -v security | sort -u)
[[ -n $archives ]] || die "apt of this machine names no archive"
export APT_CONFIG=$apt/apt.conf DEBIAN_FRONTEND=noninteractive
fetched=
for archive in $archives; do
  say "fetching packages of the suite unstable (about 80 MB)"
  echo "deb [target=Packages] $archive unstable main" >"$apt/sources.list"
  if apt-get update >"$apt/log" 2>&1 &&
    apt-get install -y --download-only mysql-server-core mysql-client-core >>"$apt/log" 2>&1; then
    fetched=yes
    break
  fi
  cat "$apt/log" >&2
done
[[ -n $fetched ]] || die "no archive of this machine has MySQL"

say "unpacking"
tree=$work/tree
mkdir "$tree"
for deb in "$apt"/cache/archives/*.deb; do
  case $(basename "$deb") in
  perl* | libperl*) ;; # a dependency of scripts that nothing here runs
  *) dpkg-deb -x "$deb" "$tree" ;;
  esac
done
mkdir -p "$root/real" "$root/share"
find "$tree" -path '*/gconv' -prune -o -name '*.so*' \( -type f -o -type l \) -not -path '*/mysql/plugin/*' -print0 |
  xargs -0 cp -Pn -t "$root/lib"
cp -r "$tree/usr/lib/mysql/plugin" "$root/lib/mysql/plugin"
cp -r "$tree/usr/share/mysql" "$root/share/mysql"
cp "$tree/usr/sbin/mysqld" "$tree/usr/bin/mysql" "$root/real"
loader=$(cd "$root/lib" && ls ld-linux*.so.* | head -n 1)
[[ -n $loader ]] || die "the packages hold no loader"
for program in mysqld mysql; do
  cat >"$root/bin/$program" <<EOF
#!/bin/sh
here=\$(dirname "\$0")/..
exec "\$here/lib/$loader" --library-path "\$here/lib" "\$here/real/$program" "\$@"
EOF
  chmod 755 "$root/bin/$program"
done
finish
