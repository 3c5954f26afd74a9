/** A process that opens a Product root and keeps it open until it is killed. */
import { Fault } from '../src/errors/fault.ts'
import { openProductRoot } from '../src/storage/root.ts'
import { TestSystem } from '../src/system/system.ts'

try {
  await openProductRoot(process.argv[2]!, new TestSystem())
  // The process holds the lock: a garbage collection of the root must not release it.
  Bun.gc(true)
  process.stdout.write('opened\n')
  setInterval(() => undefined, 60_000)
} catch (error) {
  process.stderr.write(`${error instanceof Fault ? error.code : String(error)}\n`)
  process.exitCode = 1
}
