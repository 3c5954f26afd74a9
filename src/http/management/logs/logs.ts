/** Operational logs: pages, the stream that follows them, their archive and their retention. */
import type { Logs } from '../../../product/logs/logs.ts'
import { PAGE_DEFAULT } from '../../../wire/fields.ts'
import {
  LogArchiveStatus,
  LogFollowQuery,
  LogLine,
  LogPage,
  LogPruned,
  LogPruneRequest,
  LogQuery,
} from '../../../wire/logs.ts'
import { environmentRoute, LINES_MEDIA_TYPE, type Route } from '../route.ts'

export interface LogsApp {
  readonly logs: Logs
}

export const logRoutes: readonly Route<LogsApp>[] = [
  environmentRoute({
    method: 'GET',
    path: '/logs',
    name: 'listLogs',
    summary: 'A page of log records, oldest first; without a cursor the newest page.',
    capability: 'logs:read',
    query: LogQuery,
    replies: { 200: LogPage },
    async handle({ app, query: { limit = PAGE_DEFAULT, ...query } }) {
      const { items, next } = await app.logs.page(query, limit)
      const body: LogPage = { version: 1, items, next }
      return { status: 200, body }
    },
  }),

  environmentRoute({
    method: 'GET',
    path: '/logs/follow',
    name: 'followLogs',
    summary: 'Log records as they are written, one per line, and heartbeats in between.',
    capability: 'logs:follow',
    query: LogFollowQuery,
    mediaTypes: [LINES_MEDIA_TYPE],
    replies: { 200: LogLine },
    handle({ app, query, request, authorized }) {
      const lines = app.logs.follow(query, () => authorized(() => {}), request.signal)
      return { status: 200, lines, contentType: LINES_MEDIA_TYPE }
    },
  }),

  environmentRoute({
    method: 'GET',
    path: '/logs/archive-status',
    name: 'readLogArchive',
    summary: 'Coverage of the log archive, and up to where it was found whole.',
    capability: 'logs:read',
    replies: { 200: LogArchiveStatus },
    async handle({ app }) {
      return { status: 200, body: await app.logs.archiveStatus() }
    },
  }),

  environmentRoute({
    method: 'POST',
    path: '/logs/prune',
    name: 'pruneLogs',
    summary: 'Removes archived log records that are old enough, or counts them.',
    capability: 'logs:prune',
    body: { schema: LogPruneRequest },
    replies: { 200: LogPruned },
    async handle({ app, body }) {
      return { status: 200, body: await app.logs.prune(body) }
    },
  }),
]
