/** The completion script for bash 3.2 and newer, without the functions of bash-completion. */
import { caseFunction, quotedAll, valueFunction } from './posix.ts'
import { branches, type CompletedProgram, lookupsOf } from './programs.ts'

export function bashScript(program: CompletedProgram): string {
  const lookups = lookupsOf(program)
  const prefix = `_${program.name.replaceAll('-', '_')}`
  const words = branches(lookups.words, (rows) => {
    return `choices=(${quotedAll(rows.map(([word]) => word))})`
  })
  const options = branches(lookups.options, (rows) => {
    const repeated = rows.filter(({ repeats }) => repeats).map(({ name }) => name)
    return `choices=(${quotedAll(rows.map(({ name }) => name))}) repeated=' ${repeated.join(' ')} '`
  })
  return [
    `# Completion of ${program.name} for bash. \`${program.name} completion bash\` prints it.`,
    caseFunction(`${prefix}_words`, words),
    caseFunction(`${prefix}_options`, options),
    valueFunction(`${prefix}_value`, lookups),
    walker(prefix, program.hasHelpWord),
    `complete -F ${prefix} ${program.name}`,
    '',
  ].join('\n')
}

/** The function that bash calls. Its variables are those of the functions above. */
function walker(prefix: string, hasHelpWord: boolean): string {
  return `${READING}${hasHelpWord ? HELP_WORD : ''}${COMPLETING}`.replaceAll('@@', prefix)
}

/**
 * Joins the words that bash separates at \`=\` and \`:\`, then finds the command and what its next
 * word is.
 */
const READING = `@@_paths() {
  local name
  while IFS= read -r name; do COMPREPLY+=("$name"); done < <(compgen "$1" -- "$2")
}
@@() {
  local IFS=$' \\t\\n' word node='' expect='' literal='' help='' given=' ' kind='' repeated=''
  local glued='' position=0 i raw lead=''
  local typed=() choices=()
  COMPREPLY=()
  for ((i = 1; i <= COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    if ((\${#typed[@]} > 0)) && [[ -n $word && -z \${word//[=:]/} ]]; then
      typed[\${#typed[@]} - 1]+=$word
      glued=1
    elif [[ -n $glued ]]; then
      typed[\${#typed[@]} - 1]+=$word
      glued=''
    else
      typed[\${#typed[@]}]=$word
    fi
  done
  local last=$((\${#typed[@]} - 1))
  local cur=\${typed[last]} whole=\${typed[last]}
  for ((i = 0; i < last; i++)); do
    word=\${typed[i]}
    if [[ -n $expect ]]; then
      expect=''
    elif [[ -n $literal ]]; then
      position=$((position + 1))
    elif [[ $word == -- ]]; then
      literal=1
    elif [[ $word == --*=* ]]; then
      given+="\${word%%=*} "
    elif [[ $word == -?* ]]; then
      given+="$word "
      kind=''
      @@_value "$node $word"
      if [[ -n $kind ]]; then expect=$word; fi
`

const HELP_WORD = `    elif [[ -z $node$help && $position == 0 && $word == help ]]; then
      help=1
`

const COMPLETING = `    else
      choices=()
      if ((position == 0)); then @@_words "$node"; fi
      if [[ " \${choices[*]-} " == *" $word "* ]]; then
        node+=\${node:+ }$word
      else
        position=$((position + 1))
      fi
    fi
  done
  choices=() kind=''
  if [[ -n $expect ]]; then
    @@_value "$node $expect"
  elif [[ -z $literal && $cur == --*=* ]]; then
    @@_value "$node \${cur%%=*}"
    lead=\${cur%%=*}=
    cur=\${cur#*=}
  elif [[ -z $literal && $cur == -* ]]; then
    kind=options
  else
    if ((position == 0)) && [[ -z $literal ]]; then @@_words "$node"; fi
    if ((\${#choices[@]} == 0)) && [[ -z $help ]]; then @@_value "$node #$position"; fi
  fi
  case $kind in
    options) @@_options "$node" ;;
    list)
      if [[ $cur == *,* ]]; then
        lead+=\${cur%,*},
        cur=\${cur##*,}
      fi
      compopt -o nospace 2>/dev/null
      ;;
    # Without compopt, as in bash 3.2, names are listed here.
    file) compopt -o default 2>/dev/null || @@_paths -f "$cur" ;;
    directory) compopt -o dirnames 2>/dev/null || @@_paths -d "$cur" ;;
  esac
  # Readline replaces what follows the last = or : that separates words.
  raw=\${COMP_WORDS[COMP_CWORD]}
  if [[ -z \${raw//[=:]/} ]]; then raw=''; fi
  local skip=$((\${#whole} - \${#raw}))
  for word in \${choices[@]+"\${choices[@]}"}; do
    if [[ $word != "$cur"* ]]; then continue; fi
    if [[ $kind == options && $given == *" $word "* && $repeated != *" $word "* ]]; then
      continue
    fi
    if ((skip <= \${#lead})); then
      COMPREPLY+=("\${lead:skip}$(printf %q "$word")")
    else
      word=$lead$word
      COMPREPLY+=("$(printf %q "\${word:skip}")")
    fi
  done
}`
