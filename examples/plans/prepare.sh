#!/bin/sh
# Makes git repositories of the two sample workspaces, in a folder of your choice:
#   sh examples/plans/prepare.sh /tmp/jobtable-plans
set -eu
target=${1:?usage: sh prepare.sh FOLDER}
samples=$(cd "$(dirname "$0")" && pwd)
for sample in codemod ocr; do
  if [ -e "$target/$sample" ]; then
    echo "$target/$sample is there already: remove it, or name another folder" >&2
    exit 1
  fi
  mkdir -p "$target"
  cp -R "$samples/$sample" "$target/$sample"
  git -C "$target/$sample" init --quiet
  git -C "$target/$sample" add --all
  git -C "$target/$sample" \
    -c user.name=sample -c user.email=sample@example.invalid -c commit.gpgsign=false \
    commit --quiet --message "A sample workspace"
  echo "$target/$sample"
done
