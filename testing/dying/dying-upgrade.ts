/**
 * Runs `svc upgrade` in a process of its own, which kills itself before the change of a file
 * with the given number. Arguments: the program, the release, the file of its key, and the number.
 */
import process from 'node:process'
import type { Context } from '../../src/client/contexts.ts'
import { Output } from '../../src/client/output.ts'
import { processEnvironment } from '../../src/client/process-environment.ts'
import { type Disk, REAL_DISK } from '../../src/client/upgrade/disk.ts'
import { upgrade } from '../../src/client/upgrade/upgrades.ts'

const [path = '', release = '', keyFile = '', number = ''] = process.argv.slice(2)
let changes = 0

/** Counts a change, and ends the process without any of its own code where it is the one. */
function changing<A extends readonly unknown[]>(change: (...args: A) => void) {
  return (...args: A): void => {
    changes += 1
    if (changes === Number(number)) process.kill(process.pid, 'SIGKILL')
    change(...args)
  }
}

const disk: Disk = {
  link: changing(REAL_DISK.link),
  rename: changing(REAL_DISK.rename),
  write: changing(REAL_DISK.write),
  copy: changing(REAL_DISK.copy),
  remove: changing(REAL_DISK.remove),
}

const environment = {
  ...processEnvironment(),
  program: { path, userId: process.geteuid?.() ?? null },
}
const context: Context = {
  environment,
  output: new Output(environment, { json: true }),
  tools: null,
  signal: new AbortController().signal,
  uninterrupted: (work) => work,
  remark: () => {},
  exitWith: () => {},
  endsInOrder: () => {},
}
await upgrade(
  context,
  {
    from: release,
    version: undefined,
    publicKeyFile: keyFile,
    allowsDowngrade: false,
    checks: false,
    yes: false,
    withoutBackup: false,
  },
  disk,
).catch((error) => process.stderr.write(`${error.code ?? error}\n`))
process.stdout.write(`${changes}\n`)
