/** The reference of settings, from the table that the parser of the server reads. */
import { sourceNames, VARIABLES, type Variable } from '../../src/settings/variables.ts'
import { code, table } from './markdown.ts'

const ROWS: readonly Variable[] = VARIABLES

export function settingsDocument(): string {
  const rows = ROWS.map((row) => [
    row.file ? `${code(row.name)}, or \`..._FILE\`` : code(row.name),
    row.required,
    code(row.default),
    row.description,
  ])
  const legacy = ROWS.filter((row) => row.legacy !== undefined).map((row) => [
    code(row.legacy),
    code(row.name),
  ])
  const secrets = ROWS.filter((row) => row.secret).map((row) => [
    code(row.name),
    sourceNames(row).map(code).join(', '),
  ])
  return [
    HEAD,
    table(['Variable', 'Required', 'Default', 'What it is'], rows),
    REQUIRED,
    PORTS,
    `## Secrets\n\n${SECRETS}\n${table(['Setting', 'One of these variables'], secrets)}`,
    `## Deprecated names\n\n${table(['Name', 'Use instead'], legacy)}`,
  ].join('\n')
}

const HEAD = `# Settings of the server

The server reads its settings from variables of the environment and from nowhere else: no \`.env\`
file, and no file of the directory in which it is started. \`svc-server check\` validates them and
changes nothing. \`dist-config/environment.template\` is a template with every variable.
`

const REQUIRED = `*Required* has these values: **yes**; **one source**: exactly one of the variable
and its \`..._FILE\` form; **paired**: together with the other settings of the same feature;
**no**; **recovery only**: read by the named mode alone; **client only**: read by \`svc\`.
`

const PORTS = `## Addresses and ports

An address is literal: \`127.0.0.1:3220\` or \`[::1]:3220\`, never a name. The port is always given;
0 takes any that is free, which the record \`server.listening\` names. The Management listener has
\`127.0.0.1:3220\` unless it is set. The application listener has no default, and there is none
without \`SERVICE_APPLICATION_LISTEN\`; the samples of \`dist-config\` use
\`127.0.0.1:3210\`. The two need different ports, or different addresses of the machine:
\`0.0.0.0\` is every IPv4 address and \`[::]\` every address. A port below 1024 needs
\`CAP_NET_BIND_SERVICE\`, which the unit of \`dist-config\` does not give: let the proxy have 443.
No other port is opened. Public URLs, origins and \`Host\` headers have the port of the proxy, not
of the listener.
`

const SECRETS = `A secret is given directly or as a file, never both. \`..._FILE\` is an absolute
path to a file with one line that only the server can read. A file that other users of the machine
could have written or replaced is rejected; one that they can read is named in a warning.
`
