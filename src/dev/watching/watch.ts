/** Watches a Workspace for a command that runs until it is interrupted. */
import type { WatchRequest } from '../../client/development/workspace-tools.ts'
import { CoalescingTask } from '../../system/concurrency.ts'
import { type WatchNotice, WorkspaceWatcher } from './workspace-watcher.ts'

export const WATCH_NOTICES: Readonly<Record<WatchNotice, string>> = {
  polling:
    'The system has no file watches left (on Linux: fs.inotify.max_user_watches, ' +
    'fs.inotify.max_user_instances): the files are compared twice a second instead.',
  watching: 'File watches are available again.',
  missing: 'The Workspace was removed; waiting until it is back.',
  present: 'The Workspace is back.',
  truncated: 'The Workspace has too many directories; changes in some of them are not seen.',
}

/**
 * Calls `onChange` now and after changes, one call at a time. Resolves when `signal` fires; rejects
 * with what `onChange` throws.
 */
export async function watchWorkspace(request: WatchRequest): Promise<void> {
  const { workspaceDirectory, onChange, onNotice, signal } = request
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const changes = new CoalescingTask(onChange, reject)
  const watcher = new WorkspaceWatcher({
    directory: workspaceDirectory,
    onChange: () => changes.start(),
    onNotice: (notice) => void onNotice(WATCH_NOTICES[notice]),
  })
  signal.addEventListener('abort', () => resolve(), { once: true })
  if (signal.aborted) resolve()
  try {
    changes.start()
    await promise
  } finally {
    watcher.close()
    await changes.close()
  }
}
