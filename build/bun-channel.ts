/**
 * Works around a method that Bun lacks. Vitest 5.1 unrefs the channel of its watchdog process; Bun
 * 1.4 has no such method, and no process of Bun stays alive for an idle channel of an unreferenced
 * child, so doing nothing is right.
 */
import { ChildProcess } from 'node:child_process'

interface Spawning {
  spawn(options: unknown): unknown
  channel?: { ref?: () => void; unref?: () => void } | null
}

if (process.versions.bun !== undefined) {
  const prototype = ChildProcess.prototype as unknown as Spawning
  const spawn = prototype.spawn
  prototype.spawn = function (this: Spawning, options: unknown) {
    const result = spawn.call(this, options)
    if (this.channel != null) {
      this.channel.ref ??= () => undefined
      this.channel.unref ??= () => undefined
    }
    return result
  }
}
