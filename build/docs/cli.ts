/** The reference of both command lines, from the declarations of the commands and modes. */

import { EXIT_CODES } from '../../src/client/command-line/help.ts'
import { optionForm, usageOf } from '../../src/client/command-line/program.ts'
import type { CommandSpec } from '../../src/client/contexts.ts'
import { COMMANDS } from '../../src/client/main.ts'
import { CHECK } from '../../src/server/command-line/arguments.ts'
import { MODES } from '../../src/server/usage.ts'
import { code, fenced, table } from './markdown.ts'

export function cliDocument(): string {
  const summaries = COMMANDS.map(({ name, summary }) => [
    `[\`svc ${name}\`](#svc-${name.replaceAll(' ', '-')})`,
    summary,
  ])
  const modes = MODES.map(([name, description]) => {
    // The only mode that needs an argument.
    const use = name === 'upgrade' ? `${name} ${CHECK}` : name
    return [code(`svc-server ${use}`), description]
  })
  const exits = Object.entries(EXIT_CODES).map(([exit, meaning]) => [exit, meaning])
  return [
    HEAD,
    table(['Command', 'What it does'], summaries),
    `## Exit codes\n\n${table(['Code', 'Meaning'], exits)}`,
    COMPLETION,
    `## svc-server\n\n${SERVER}\n${table(['Mode', 'What it does'], modes)}`,
    ...COMMANDS.map(commandSection),
  ].join('\n')
}

const HEAD = `# Commands and options of svc and svc-server

Every command of \`svc\` takes \`--json\`, which prints one JSON document on standard output and
nothing else there, and \`--help\`. An option is written \`--name VALUE\` or \`--name=VALUE\`.
`

const COMPLETION = `## Completion and manual pages

\`install.sh\` puts completions for bash, zsh and fish and the manual pages below
\`~/.local/share\`, or below \`/usr/local/share\` for root and for a service; \`--no-completions\`
leaves them out. With \`SVC_INSTALL_DIR\` everything stays there: they are in
\`.svc-install/files/share\`. A file that the installer did not write is never replaced.

Completions have the commands, options, closed sets of values and paths of one version as text.
They send no request and do not start the program. Without the installer:

\`\`\`sh
svc completion bash > ~/.local/share/bash-completion/completions/svc
svc completion zsh > ~/.zfunc/_svc
svc completion fish > ~/.config/fish/completions/svc.fish
\`\`\`

bash reads that directory if the package bash-completion is installed; without it, put
\`source <(svc completion bash)\` into \`~/.bashrc\`, which bash from 4.0 can read. In zsh the
directory is one of \`fpath\`, set before \`compinit\`. \`svc-server completion\` prints the scripts
of the server. The pages are \`svc(1)\`, \`svc-server(8)\` and one for the first word of each
command, such as \`man svc-buckets\`.
`

const SERVER = `The settings of all modes are variables of the environment: see
[settings](settings.md). These modes have arguments:
\`serve --accept-loss SEQUENCE\` ([backup](backup.md)), \`verify-storage --repair\`,
\`upgrade --check [--json]\` ([upgrade](upgrade.md)), \`restore\` ([disaster](disaster.md)), and
\`setup\` ([setup](setup.md)).
`

function commandSection(command: CommandSpec): string {
  const { name, summary, details, positionals, options, examples } = command
  const argumentRows = positionals.map((each) => [
    code(each.name),
    each.required ? `${each.description} (required)` : each.description,
  ])
  const optionRows = Object.entries(options).map(([option, declared]) => [
    code(optionForm(option, declared)),
    declared.required ? `${declared.description} (required)` : declared.description,
  ])
  return [
    `## svc ${name}\n`,
    fenced('text', [`svc ${usageOf(command)}`]),
    `${[`${summary}.`, ...details].join('\n')}\n`,
    ...(argumentRows.length > 0 ? [table(['Argument', 'Meaning'], argumentRows)] : []),
    ...(optionRows.length > 0 ? [table(['Option', 'Meaning'], optionRows)] : []),
    ...(examples.length > 0 ? [fenced('sh', examples)] : []),
  ].join('\n')
}
