import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const MODULE = `${import.meta.dirname}/wake-ups.ts`
/** Prints the returned value, then the slices of this thread and of a child process. */
const SCRIPT = `
  import { readFileSync } from 'node:fs'
  import { preemptWhenWoken } from '${MODULE}'
  const slice = (pid) =>
    /^se\\.slice +: +(\\d+)$/m.exec(readFileSync('/proc/' + pid + '/sched', 'utf8'))?.[1]
  const before = slice(process.pid)
  const asked = preemptWhenWoken()
  const child = Bun.spawn(['sleep', '600'])
  console.log(JSON.stringify({ asked, before, own: slice(process.pid), child: slice(child.pid) }))
  child.kill()`

/** Linux from 6.12 on lets a thread choose its slice; a kernel without statistics hides it. */
function hasSlices(): boolean {
  if (!existsSync('/proc/self/sched')) return false
  const [major, minor] = readFileSync('/proc/sys/kernel/osrelease', 'utf8').split('.').map(Number)
  return major! > 6 || (major === 6 && minor! >= 12)
}

function run(...prefix: string[]) {
  const { stdout } = Bun.spawnSync([...prefix, process.execPath, '-e', SCRIPT])
  return JSON.parse(stdout.toString())
}

test.runIf(hasSlices())('a thread has the shortest slices, and what it starts has not', () => {
  const { asked, before, own, child } = run()
  expect({ asked, own, child }).toEqual({ asked: true, own: '100000', child: before })
})

test.runIf(hasSlices() && Bun.which('chrt') !== null)(
  'a policy that the operator has chosen is left alone',
  () => {
    const { asked, before, own } = run('chrt', '--batch', '0')
    expect({ asked, own }).toEqual({ asked: false, own: before })
  },
)
