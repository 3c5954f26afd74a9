/** The reference of the doctor, from the one table of its checks. */
import { AREAS, CHECKS } from '../../src/server/doctor/checks.ts'
import { code, table } from './markdown.ts'

export function doctorDocument(): string {
  const parts = AREAS.map(({ title, checks }) => {
    const rows = checks.map(({ name, why, repair }) => [code(name), why, code(repair)])
    return `## ${title}\n\n${table(['Check', 'Why it matters', 'Repair'], rows)}`
  })
  return [HEAD, ...parts].join('\n')
}

const HEAD = `# Doctor: ${CHECKS.length} checks of an installation, and what repairs it

\`svc-server doctor\` checks the installation on its machine, with the settings of the server, and
as its user. It changes nothing, migrates nothing and needs no running server. It prints what each
check saw, failures last, each with the reason and the command that repairs it; \`--json\` prints
one JSON document. \`svc doctor\` lets a running server make the same checks: it needs
\`environments:manage\`, and a second run at the same time is 503.

${table(
  ['Checked', 'server stopped', 'beside a running server', '`svc doctor`'],
  [
    ['settings, machine, PostgreSQL, modes, certificates', 'yes', 'yes', 'yes'],
    [
      'control database, log, documents in the root',
      'yes, under the lock of the root',
      'skipped',
      'yes; files over 4 MiB not as a whole',
    ],
    ['samples of artifacts and of stored files', 'yes', 'yes', 'yes'],
    ['headers as the proxy passes them on', 'skipped', 'skipped', 'yes, those of the request'],
  ],
)}
The exit code is 0 without failures, also with warnings, and 4 with a failure. A check is *skipped*
where it does not apply or what it needs cannot be reached, and says so. No check prints a secret or
a stored value.

A run is bounded: it reads at most 256 files and 64 MiB of artifacts and as much of stored files,
200 entries of each index, and the newest four segments of the log. All stored files are read by
\`svc-server verify-storage\`. Times of fsync show a disk that does not wait; that one waits, no
program can prove, only a power failure.

Capital words of a repair stand for names that the report fills in.
`
