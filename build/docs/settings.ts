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

const SECRETS = `A secret is given directly or as a file, never both. \`..._FILE\` is an absolute
path to a file with one line that only the server can read. A file that other users of the machine
could have written or replaced is rejected; one that they can read is named in a warning.
`
