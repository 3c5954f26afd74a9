/** A directory with a release and its installer, for tests of the setup that it runs at its end. */
import type { SpawnSyncReturns } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type ReleaseOptions,
  runInstaller,
  writeRelease,
} from '../../build/origin/installer-fixture.ts'

export class Installer {
  readonly work = mkdtempSync(join(tmpdir(), 'svc-install-'))

  release(options?: ReleaseOptions): void {
    writeRelease(this.work, options)
  }

  install(
    args?: readonly string[],
    environment?: Record<string, string>,
    shell?: string,
  ): SpawnSyncReturns<string> {
    return runInstaller(this.work, args, environment, shell)
  }

  remove(): void {
    rmSync(this.work, { recursive: true, force: true })
  }
}
