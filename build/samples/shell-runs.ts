/** The shell samples that `shell-runs.test.ts` runs in a folder that stands for a machine. */

const DOCS = 'src/docs'

export const COPY = `${DOCS}/backup.md#copy-a-stopped-server 1`
export const RESTORE_COPY = `${DOCS}/backup.md#restore-a-copy 1`
export const ACCEPT_LOSS = `${DOCS}/backup.md#documents-that-lack-acknowledged-changes 2`
export const SHOW_TOKEN = `${DOCS}/ci.md#invite-the-job-once 2`
export const SECRETS = `${DOCS}/containers.md#docker-compose 1`
export const RENEWAL = `${DOCS}/proxies.md#tls-without-a-proxy 2`

export const EXECUTED: readonly string[] = [
  COPY,
  RESTORE_COPY,
  ACCEPT_LOSS,
  SHOW_TOKEN,
  SECRETS,
  RENEWAL,
]
