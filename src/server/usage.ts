/** Formats the help of `svc-server` from the table of settings that the parser reads. */
import { isRequired, VARIABLES, type Variable } from '../settings/variables.ts'
import { BUILD_VERSION } from '../value/version.ts'

/** The modes with their summaries. */
export const MODES = [
  ['check', 'read settings and files as serve would; connects to nothing, changes nothing'],
  ['completion', 'print a script that completes these words: completion bash, zsh or fish'],
  ['doctor', 'check settings, machine, databases and files, and say what to repair; --json'],
  ['migrate', 'create or upgrade all databases; safe to repeat: svc docs upgrade'],
  ['ready', 'ask the running server whether it is ready; exit code 5 if not'],
  ['recover-bootstrap', 'replace a first-owner code that was lost before it was used'],
  ['recover-owner', 'issue an owner invitation where every owner has lost access'],
  ['restore', 'make a new Product root and identity database from a backup: svc docs disaster'],
  ['rotate-keys', 'seal the secrets of a stopped Product root under a new key'],
  ['serve', 'check the schema and serve until SIGTERM; --accept-loss SEQUENCE: svc docs backup'],
  ['setup', 'set up PostgreSQL and the service on this machine, after a question; --dry-run'],
  ['upgrade', '--check says what this version would change, and changes nothing; --json'],
  ['verify-storage', 'find missing and damaged files of a stopped server; --repair sets aside'],
  ['version', 'print the version'],
] as const

export function usage(): string {
  const modes = MODES.map(([name, description]) => `  ${name.padEnd(19)}${description}`)
  const rows: readonly Variable[] = VARIABLES.filter((row) => row.required !== 'client only')
  return [
    `svc-server ${BUILD_VERSION}: serves operator identity and one Product Environment.`,
    '',
    'Usage: svc-server <mode>',
    '',
    ...modes,
    '',
    'Required settings (environment variables):',
    ...rows.filter(isRequired).flatMap(setting),
    '',
    'Optional settings:',
    ...rows.filter((row) => !isRequired(row)).flatMap(setting),
    '',
  ].join('\n')
}

function setting(row: Variable): string[] {
  const name = row.file ? `${row.name}, or the file named by ${row.name}_FILE` : row.name
  const otherwise = row.default === undefined ? '' : ` (default ${row.default})`
  return [`  ${name}${otherwise}`, `      ${row.description}`]
}
