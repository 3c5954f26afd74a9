/** `svc doctor`: lets a running server check itself, its machine and its stores. */
import type { CheckStatus } from '../../../wire/doctor/report.ts'
import { doctorExit, doctorLines } from '../../../wire/doctor/report-text.ts'
import { runDoctor } from '../../../wire/operations/instances.ts'
import type { Style } from '../../output.ts'
import { requestCommand } from '../../request-commands.ts'
import { REMOTE } from '../operations.ts'

const STYLES: Readonly<Record<CheckStatus, Style>> = {
  ok: 'dim',
  skipped: 'dim',
  warning: 'yellow',
  failed: 'red',
}

export const doctorCommand = requestCommand({
  name: 'doctor',
  summary: 'Let the server check its settings, machine, databases and files',
  details: [
    'Each check says what it saw; a failure also why it matters and what repairs it. The exit',
    'code is 0 also with warnings, and 4 if a check failed. Needs environments:manage; one run at',
    'a time. `svc-server doctor`, on the machine of the server, checks one that does not run. Only',
    'there, with the server stopped, control-integrity, document-file-integrity and log-integrity',
    'read files over 4 MiB, and the sandbox tries the known escapes.',
  ],
  options: REMOTE,
  examples: ['svc doctor', 'svc doctor --json'],
  progress: 'waiting for the checks of the server',
  request: (remote) => remote.call(runDoctor),
  explains: {
    PLATFORM_NOT_FOUND: {
      detail: 'This server has no doctor: it is older than this svc, or is `svc dev`.',
      next: 'Update the server, or run the new `svc-server doctor` on its machine.',
    },
    PRODUCT_UNAVAILABLE: { next: 'Another run may be under way: wait, then repeat the command.' },
  },
  exit: doctorExit,
  lines: (report, { output }) =>
    doctorLines(report, {
      styled: (status, text) => output.styled(STYLES[status], text),
      // The output escapes control characters.
      printable: (text) => text.replaceAll('\n', ' '),
    }),
})
