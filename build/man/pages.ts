/** The manual pages: svc(1), one for the commands of each first word, and svc-server(8). */
import { EXIT_CODES } from '../../src/client/command-line/help.ts'
import {
  HELP_OPTIONS,
  JSON_OPTION,
  PROGRAM_OPTIONS,
} from '../../src/client/command-line/program.ts'
import type { CommandSpec, OptionSpec } from '../../src/client/contexts.ts'
import { COMMANDS } from '../../src/client/main.ts'
import { MODE_OPTIONS } from '../../src/server/command-line/arguments.ts'
import { MODES } from '../../src/server/usage.ts'
import { VARIABLES, type Variable } from '../../src/settings/variables.ts'
import { argumentsOf, escaped, literal, optionHead, type Page, prose, terms } from './mdoc.ts'

/** Variables that `svc` reads besides those that options name. */
const CLIENT_VARIABLES = [
  ['SERVICE_CONFIG_HOME', 'Directory of the session, in place of the usual one.'],
  ['HTTPS_PROXY , NO_PROXY', 'Proxy of requests, and the hosts that are reached without it.'],
  ['NO_COLOR', 'Output has no colour if it is set.'],
] as const

const SERVER_FILES = [
  ['/etc/svc/environment', 'Settings of the service that the installer sets up.'],
  ['/etc/svc/platform-identity-pepper', 'The pepper of that service. Back it up.'],
  ['/etc/systemd/system/svc-server.service', 'The unit of that service.'],
] as const

export function manualPages(): readonly Page[] {
  const groups = [...new Set(COMMANDS.map(({ name }) => name.split(' ')[0]!))]
  return [clientPage(groups), ...groups.map(groupPage), serverPage()]
}

function clientPage(groups: readonly string[]): Page {
  return {
    name: 'svc',
    section: 1,
    summary: 'command line of an application backend',
    sections: [
      ['SYNOPSIS', '.Nm\n.Ar command\n.Op Ar options'],
      [
        'DESCRIPTION',
        [
          prose('Serves a Workspace on this machine, and operates the Environment of a server.'),
          prose('Each command has a manual page by its first word, such as svc-buckets.'),
          terms(COMMANDS.map(({ name, summary }) => [`Cm ${argumentsOf(name)}`, `${summary}.`])),
          '.Pp',
          prose('Every command has these options:'),
          terms([
            [optionHead(JSON_OPTION, null), `${PROGRAM_OPTIONS.json}.`],
            [optionHead(HELP_OPTIONS[0]!, null), `${PROGRAM_OPTIONS.help}.`],
          ]),
        ].join('\n'),
      ],
      ['ENVIRONMENT', terms(CLIENT_VARIABLES.map(([name, text]) => [`Ev ${name}`, text]))],
      ['EXIT STATUS', exitStatus()],
      ['SEE ALSO', seeAlso([...groups.map((group) => `svc-${group} 1`), 'svc-server 8'])],
    ],
  }
}

function groupPage(group: string): Page {
  const commands = COMMANDS.filter(({ name }) => name.split(' ')[0] === group)
  const [first] = commands
  const words = commands.map(({ name }) => name.slice(group.length + 1)).filter((word) => word)
  const isOne = commands.length === 1 || first!.name === group
  return {
    name: `svc-${group}`,
    section: 1,
    summary: isOne ? lowerCase(first!.summary) : `commands ${words.join(', ')} of svc ${group}`,
    sections: [
      ['SYNOPSIS', commands.map(synopsis).join('\n')],
      ['DESCRIPTION', commands.map(commandText).join('\n')],
      ['EXIT STATUS', exitStatus()],
      ['EXAMPLES', examples(commands)],
      ['SEE ALSO', seeAlso(['svc 1'])],
    ],
  }
}

function lowerCase(summary: string): string {
  return `${summary.charAt(0).toLowerCase()}${summary.slice(1)}`
}

function synopsis({ name, positionals, options }: CommandSpec): string {
  const required = Object.entries(options).filter(([, option]) => option.required)
  return [
    `.Nm svc ${argumentsOf(name)}`,
    ...positionals.map(({ name: argument, required: isRequired }) =>
      isRequired ? `.Ar ${argumentsOf(argument)}` : `.Op Ar ${argumentsOf(argument)}`,
    ),
    ...required.map(([option, { value }]) => `.${optionHead(`--${option}`, value)}`),
    '.Op Ar options',
  ].join('\n')
}

function commandText(spec: CommandSpec): string {
  const { name, summary, details, positionals, options } = spec
  return [
    `.Ss svc ${argumentsOf(name)}`,
    prose([`${summary}.`, ...details].join(' ')),
    terms([
      ...positionals.map(({ name: argument, description }): [string, string] => [
        `Ar ${argumentsOf(argument)}`,
        `${description}.`,
      ]),
      ...Object.entries(options).map(([option, declared]): [string, string] => [
        optionHead(`--${option}`, declared.value),
        optionText(declared),
      ]),
    ]),
  ]
    .filter((part) => part !== '')
    .join('\n')
}

function optionText({ description, required }: OptionSpec): string {
  return required ? `${description} (required).` : `${description}.`
}

function examples(commands: readonly CommandSpec[]): string {
  const lines = commands.flatMap((command) => command.examples)
  return lines.length === 0 ? '' : literal(lines)
}

function exitStatus(): string {
  return terms(Object.entries(EXIT_CODES).map(([exit, text]) => [exit, `${text}.`]))
}

function seeAlso(references: readonly string[]): string {
  const sorted = [...references].sort((a, b) => {
    const [x, y] = [a.split(' '), b.split(' ')]
    return Number(x[1]) - Number(y[1]) || (x[0]! < y[0]! ? -1 : 1)
  })
  return sorted.map((name, i) => `.Xr ${name}${i === sorted.length - 1 ? '' : ' ,'}`).join('\n')
}

function serverPage(): Page {
  const rows: readonly Variable[] = VARIABLES.filter((row) => row.required !== 'client only')
  return {
    name: 'svc-server',
    section: 8,
    summary: 'server of operator identity and one Product Environment',
    sections: [
      ['SYNOPSIS', '.Nm\n.Ar mode\n.Op Ar options'],
      [
        'DESCRIPTION',
        [
          prose('The first argument is the mode. All settings are variables of the environment.'),
          ...MODES.map(([name, summary]) =>
            [
              `.Ss svc\\-server ${argumentsOf(name)}`,
              prose(`${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`),
              terms(
                (MODE_OPTIONS[name] ?? []).map(({ name: option, value, description }) => [
                  optionHead(option, value),
                  `${description}.`,
                ]),
              ),
            ]
              .filter((part) => part !== '')
              .join('\n'),
          ),
        ].join('\n'),
      ],
      [
        'ENVIRONMENT',
        terms(
          rows.map((row) => [
            `Ev ${row.name}`,
            `${row.description}${row.default === undefined ? '' : ` (default ${row.default})`}.${
              row.file ? ` ${row.name}_FILE may name a file that holds the value.` : ''
            }`,
          ]),
        ),
      ],
      ['FILES', terms(SERVER_FILES.map(([path, text]) => [`Pa ${escaped(path)}`, text]))],
      ['EXIT STATUS', exitStatus()],
      ['SEE ALSO', seeAlso(['svc 1'])],
    ],
  }
}
