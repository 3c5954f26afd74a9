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
      'yes; database files over 4 MiB not as a whole',
    ],
    ['samples of artifacts and of stored files', 'yes', 'yes', 'yes'],
    ['headers as the proxy passes them on', 'skipped', 'skipped', 'yes, those of the request'],
    ['public URL', 'skipped', 'yes', 'yes'],
    ['listeners', 'whether they are free', 'whether they answer', 'whether they answer'],
    ['sandbox', 'tries the known escapes', 'tries the known escapes', 'as the server found it'],
  ],
)}
Only \`svc-server doctor\` with the server stopped reads database files over 4 MiB as a whole
(\`control-integrity\`, \`document-file-integrity\`, \`log-integrity\`, each up to 1 GiB). With
\`SERVICE_PRODUCT_ROOT\` unset there is no lock that tells whether a server runs, and the listeners
are not tried. A server older than 0.5.0 has no doctor, and neither has \`svc dev\`: \`svc doctor\`
says so and exits with 7.

The exit code is 0 without failures, also with warnings, and 4 with a failure. A check is *skipped*
where it does not apply or what it needs cannot be reached, and says so. No check prints a secret or
a stored value.

A run is bounded: it reads at most 256 files and 64 MiB of artifacts and as much of stored files,
200 entries of each index, and the newest segments of the log until they have 64 MiB. It lists at
most 20,000 entries of a directory, and says *first* or *at least* where there are more. All stored
files are read by \`svc-server verify-storage\`. Times of fsync show a disk that does not wait; that
one waits, no program can prove, only a power failure.

Capital words of a repair stand for names that the report fills in.
`
