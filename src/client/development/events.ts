/** The events that `svc dev` reports while it runs; with --json each is one line. */
import type { Json } from '../../value/strict-json.ts'
import type { Changes } from './changes.ts'

export type DevelopmentEvent =
  | {
      readonly event: 'ready'
      /** Origin of the application API. */
      readonly url: string
      /** Origins for devices of the local network; empty unless they may call. */
      readonly networkUrls: readonly string[]
      readonly applicationKey: string
      /** Absolute path of the Workspace. */
      readonly workspace: string
      readonly targets: string[]
      /** File with the key that synchronizes Workspaces; null if the Environment denies that. */
      readonly developmentKeyFile: string | null
      /** A command line that calls a Function; null if the Workspace has none to call so. */
      readonly try: string | null
      /** A command line of curl for that call; null if its arguments have no plain form. */
      readonly curl: string | null
      /** A command line that opens the console. */
      readonly console: string
      /** A command line that editors start for their agents. */
      readonly agents: string
    }
  | {
      readonly event: 'served'
      readonly releaseId: string
      readonly functions: number
      readonly tables: number
      /** Time from the change of a file until the new code answers. */
      readonly durationMillis: number
      readonly changes: Changes
      readonly warnings: string[]
    }
  | {
      readonly event: 'attached'
      /** Origin of the application API of the shared Environment. */
      readonly url: string
      readonly environmentId: string
      /** Name of the Workspace. */
      readonly workspace: string
      /** The HEAD that is continued; null for a new Workspace. */
      readonly revisionId: string | null
    }
  | {
      /** The saved state is the HEAD of the Workspace in the shared Environment. */
      readonly event: 'synchronized'
      readonly workspace: string
      readonly revisionId: string
      readonly releaseId: string
      /** State of the Release: only a validated one answers calls. */
      readonly state: string
      readonly bytes: number
      /** Time from the change of a file until the server has answered. */
      readonly durationMillis: number
      readonly warnings: string[]
    }
  | {
      /** The source is not served; the previous code continues to serve. */
      readonly event: 'rejected'
      readonly code: string
      readonly message: string
      /** Problems with location and fix, or checks that failed. */
      readonly details: string[]
      /** Ways out, one sentence each. */
      readonly next: string[]
    }
  | {
      /** The documents of a backup were copied into the root, before the Workspace is served. */
      readonly event: 'copied'
      readonly from: string
      readonly environmentId: string
      readonly historyId: string
      /** The state of the backup. */
      readonly sequence: number
      /** Unix microseconds of that state, as decimal text. */
      readonly atMicros: string
      readonly tables: readonly {
        readonly table: string
        readonly documents: number
        /** Documents that do not fit the schema, and those of a table that it lacks. */
        readonly leftOut: number
        /** The rule that the first of them breaks; null for a table that the schema lacks. */
        readonly rule: string | null
        /** Paths of fields that the schema lacks, which were left out; 20 at most. */
        readonly fieldsLeftOut: readonly string[]
      }[]
      /** Stored files, whose bytes are read from the backup when they are first needed. */
      readonly files: number
      readonly isRedacted: boolean
    }
  | {
      /** A migration that the saved code requires has ended, before the code is served. */
      readonly event: 'migrated'
      readonly name: string
      /** `complete`, or the state that it stopped in. */
      readonly state: string
      readonly processed: number
      readonly changed: number
    }
  | {
      /** The types of what is served, where they changed: checked beside it, never in its way. */
      readonly event: 'types'
      /** Problems with location and fix; empty when the last ones are gone. */
      readonly details: string[]
    }
  | {
      /** The variables and secrets of the local Environment followed the file of the Workspace. */
      readonly event: 'configuration'
      /** Names that have another value now, never with the value. */
      readonly set: readonly { readonly name: string; readonly kind: 'variable' | 'secret' }[]
      readonly removed: readonly string[]
      /** All problems that are left, with their fixes; empty when the last ones are gone. */
      readonly warnings: readonly string[]
    }
  | {
      readonly event: 'call'
      readonly kind: string
      readonly function: string
      /** `ok`, or the code of the error. */
      readonly outcome: string
      readonly detail: string | null
      readonly durationMillis: number
    }
  | {
      /** Work that a Function scheduled, or that is attempted again, by Function. */
      readonly event: 'due'
      readonly function: string
      /** Pieces of one commit. */
      readonly count: number
      /** The first of them. */
      readonly scheduledId: string
      /** Unix microseconds of its due time, as decimal text. */
      readonly dueAtMicros: string
    }
  | {
      /** The hooks of http.ts, where they changed: other services call these URLs. */
      readonly event: 'hooks'
      readonly hooks: readonly {
        readonly name: string
        readonly methods: readonly string[]
        readonly url: string
        readonly function: string
        /** The scheme of its verification; null for none. */
        readonly verify: string | null
      }[]
    }
  | {
      /** The Crons in force, where their names, times or Functions changed. */
      readonly event: 'crons'
      readonly crons: readonly {
        readonly name: string
        readonly function: string
        /** The expression with its zone, or the interval. */
        readonly times: string
        /** Unix microseconds, as decimal text; null if no time follows. */
        readonly nextRunAtMicros: string | null
      }[]
    }
  | {
      /** A run of scheduled work has ended. */
      readonly event: 'ran'
      readonly scheduledId: string
      readonly function: string
      /** Null where a Function scheduled the work. */
      readonly cron: string | null
      /** `ok`, or the code of the error. */
      readonly outcome: string
      /** True if the work will be attempted again. */
      readonly isRepeated: boolean
      readonly durationMillis: number
      /** The next time of the Cron; null for other work. */
      readonly nextRunAtMicros: string | null
    }
  | {
      /** A line that a Function wrote with `console` or `ctx.log`. */
      readonly event: 'log'
      readonly level: string
      readonly function: string
      readonly message: string
      readonly data: Json
    }
  | {
      /** An error that a Function threw. */
      readonly event: 'failed'
      readonly function: string
      readonly message: string
      /** Frames in the files of the author. */
      readonly trace: string[]
      /** Lines of source around the failure; empty where the source is not known. */
      readonly codeFrame: string[]
    }
  | { readonly event: 'notice'; readonly message: string }
