/** The completion for bash 3.2 and later: `source <(jobtable completion bash)`. */
import type { Completions, Place } from "./model.js";

export function bashCompletion({ program, places, valued, choices }: Completions): string {
  const name = `_${program}`;
  const known = places.filter(({ path }) => path !== "").map(({ path }) => `"${path}"`);
  return `# bash completion for ${program}
${name}() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]}
  local place="" skip=0 words="" flags="" i word
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    if ((skip)); then skip=0; continue; fi
    case $word in
      ${valued.join("|")}) skip=1 ;;
      -*) ;;
      *)
        case "\${place:+$place }$word" in
          ${known.join("|")}) place="\${place:+$place }$word" ;;
        esac ;;
    esac
  done
  COMPREPLY=()
  case $prev in
${choices.map(({ names, values }) => `    ${names.join("|")}) COMPREPLY=($(compgen -W "${values.join(" ")}" -- "$cur")); return ;;`).join("\n")}
    ${valued.join("|")}) return ;;
  esac
  case $place in
${places.map(caseOf).join("\n")}
  esac
  if [[ $cur == -* ]]; then COMPREPLY=($(compgen -W "$flags" -- "$cur"))
  else COMPREPLY=($(compgen -W "$words" -- "$cur")); fi
}
complete -o default -F ${name} ${program}`;
}

function caseOf({ path, words, flags }: Place): string {
  const texts = words.map(({ text }) => text).join(" ");
  const names = flags.flatMap((flag) => flag.names).join(" ");
  return `    "${path}") words="${texts}" flags="${names}" ;;`;
}
