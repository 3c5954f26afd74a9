/** The commands for Workspaces. The callers print results and failures. */
import { join } from 'node:path'
import type { WorkspaceTools } from '../client/development/workspace-tools.ts'
import { type BuildRequest, runBuild, runClientCodegen } from './building/commands.ts'
import { encodeWorkspacePackage } from './building/package.ts'
import { writeWorkspace } from './new-workspaces.ts'
import { formatProblem } from './workspace/problems.ts'

/** The ports of the commands that only the executable provides. */
export function workspaceTools({
  describe,
  startTypeChecker,
}: Pick<BuildRequest, 'describe' | 'startTypeChecker'>): WorkspaceTools {
  return {
    async openForeignDatabase(path) {
      const { openForeignDatabase } = await import('../system/foreign/foreign-databases.ts')
      return openForeignDatabase(path)
    },
    async build({ workspaceDirectory, projectId, checksTypes }) {
      const request = { workspaceDirectory, describe }
      const checked = checksTypes ? { ...request, startTypeChecker } : request
      const { build } = await runBuild(checked)
      const frame = encodeWorkspacePackage(build, projectId)
      return { frame, warnings: build.diagnostics.map(formatProblem) }
    },
    async generate({ workspaceDirectory, clientDirectory }) {
      const request = { workspaceDirectory, describe }
      const { build, changed } =
        clientDirectory === null
          ? await runBuild(request)
          : await runClientCodegen({ ...request, clientDirectory })
      const within = (path: string) => join(build.directory, path)
      return {
        changed: clientDirectory === null ? changed.map(within) : changed,
        warnings: build.diagnostics.map(formatProblem),
      }
    },
    writeWorkspace: async ({ workspaceDirectory, ...content }) =>
      writeWorkspace(workspaceDirectory, content),
    async watch(request) {
      const { watchWorkspace } = await import('./watching/watch.ts')
      return watchWorkspace(request)
    },
    async attach(request) {
      const { runAttached } = await import('./attached/attached-session.ts')
      return runAttached({ ...request, describe, startTypeChecker })
    },
    async signSample(sample) {
      const { signSample } = await import('./local/hook-samples.ts')
      return signSample(sample)
    },
    async failureOf(record, workspaceDirectory) {
      const { failureOf } = await import('./local/hook-samples.ts')
      return failureOf(record, workspaceDirectory)
    },
    async checkBackup(request) {
      const { checkBackup } = await import('./backups/check-backup.ts')
      return checkBackup(request)
    },
    async develop(request) {
      // Loads the parts of a server only here, since a build does not need them.
      const { runDevelopment } = await import('./local/svc-dev.ts')
      return runDevelopment({ ...request, describe, startTypeChecker })
    },
  }
}
