/** The completion script for zsh: a file of `fpath`, or text that is read after `compinit`. */
import { caseFunction, quotedAll, valueFunction } from './posix.ts'
import { branches, type CompletedProgram, type Described, lookupsOf } from './programs.ts'

export function zshScript(program: CompletedProgram): string {
  const lookups = lookupsOf(program)
  const prefix = `_${program.name.replaceAll('-', '_')}`
  const entries = (rows: readonly Described[]): string =>
    `entries=(${quotedAll(rows.map(([word, summary]) => `${word}:${summary}`))})`
  const options = branches(lookups.options, (rows) => {
    const repeated = rows.filter(({ repeats }) => repeats).map(({ name }) => name)
    const described = rows.map(({ name, summary }): Described => [name, summary])
    return `${entries(described)} repeated=(${quotedAll(repeated)})`
  })
  const help = program.hasHelpWord ? HELP_WORD : ''
  return [
    `#compdef ${program.name}`,
    `# Completion of ${program.name} for zsh. \`${program.name} completion zsh\` prints it.`,
    caseFunction(`${prefix}_words`, branches(lookups.words, entries)),
    caseFunction(`${prefix}_options`, options),
    valueFunction(`${prefix}_value`, lookups),
    `${READING}${help}${COMPLETING}`.replaceAll('@@', prefix),
    'if [[ $zsh_eval_context[-1] == loadautofunc ]]; then',
    `  ${prefix} "$@"`,
    'else',
    `  compdef ${prefix} ${program.name}`,
    'fi',
    '',
  ].join('\n')
}

/** Finds the command and what its next word is. The names of zsh's own variables are avoided. */
const READING = `@@() {
  local node='' expect='' literal='' help='' kind='' word
  local -i position=0
  local -a entries choices given repeated
  for word in "\${(@)words[2,CURRENT-1]}"; do
    if [[ -n $expect ]]; then
      expect=''
    elif [[ -n $literal ]]; then
      position+=1
    elif [[ $word == -- ]]; then
      literal=1
    elif [[ $word == --*=* ]]; then
      given+=("\${word%%=*}")
    elif [[ $word == -?* ]]; then
      given+=("$word")
      kind=''
      @@_value "$node $word"
      if [[ -n $kind ]]; then expect=$word; fi
`

const HELP_WORD = `    elif [[ -z $node$help && $position == 0 && $word == help ]]; then
      help=1
`

const COMPLETING = `    else
      entries=()
      if (( position == 0 )); then @@_words "$node"; fi
      if (( \${entries[(I)\${(b)word}:*]} )); then
        node+=\${node:+ }$word
      else
        position+=1
      fi
    fi
  done
  entries=() choices=() kind=''
  if [[ -n $expect ]]; then
    @@_value "$node $expect"
  elif [[ -z $literal && $PREFIX == --*=* ]]; then
    @@_value "$node \${PREFIX%%=*}"
    compset -P 1 '*='
  elif [[ -z $literal && $PREFIX == -* ]]; then
    kind=options
  else
    if (( position == 0 )) && [[ -z $literal ]]; then @@_words "$node"; fi
    if (( $#entries )); then
      kind=commands
    elif [[ -z $help ]]; then
      @@_value "$node #$position"
    fi
  fi
  case $kind in
    commands) _describe -t commands command entries ;;
    options)
      @@_options "$node"
      for word in $given; do
        if (( ! \${repeated[(Ie)$word]} )); then
          entries=("\${(@)entries:#\${(b)word}:*}")
        fi
      done
      _describe -t options option entries
      ;;
    words) compadd -a choices ;;
    list)
      compset -P '*,'
      compadd -S '' -a choices
      ;;
    file) _files ;;
    directory) _files -/ ;;
  esac
}`
