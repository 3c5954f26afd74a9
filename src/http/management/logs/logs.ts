/** Operational logs: pages, the stream that follows them, their archive and their retention. */
import type { Logs } from '../../../product/logs/logs.ts'
import { PAGE_DEFAULT } from '../../../wire/fields.ts'
import type { LogPage } from '../../../wire/logs.ts'
import { LINES_MEDIA_TYPE } from '../../../wire/media-types.ts'
import { logOperations } from '../../../wire/operations/logs.ts'
import { bind, type Route } from '../route.ts'

export interface LogsApp {
  readonly logs: Logs
}

export const logRoutes: readonly Route<LogsApp>[] = bind(logOperations, {
  async listLogs({ app, query: { limit = PAGE_DEFAULT, ...query } }) {
    const { items, next } = await app.logs.page(query, limit)
    const body: LogPage = { version: 1, items, next }
    return { status: 200, body }
  },

  followLogs({ app, query, request, authorized }) {
    const lines = app.logs.follow(query, () => authorized(() => {}), request.signal)
    return { status: 200, lines, contentType: LINES_MEDIA_TYPE }
  },

  async readLogArchive({ app }) {
    return { status: 200, body: await app.logs.archiveStatus() }
  },

  async pruneLogs({ app, body }) {
    return { status: 200, body: await app.logs.prune(body) }
  },
})
