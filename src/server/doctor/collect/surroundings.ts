import { checkStateDirectory } from '../../../identity/bootstrap-files.ts'
import { S3Objects } from '../../../storage/blobs/s3-objects.ts'
import { sqliteVersion } from '../../../system/inspected-databases.ts'
import { revealAddress } from '../../blobs.ts'
import { type Readings, skip } from '../readings.ts'
import { readCertificateOrders } from './certificate-orders.ts'
import { existing, readDisk, readMemory, readProcess, readQuota, readSync } from './machine.ts'
import { readCertificate, readFreeListener, readPublicUrl, readServedListener } from './network.ts'
import type { CollectOptions, LockState } from './options.ts'
import { readingOf } from './reading-of.ts'
import { configuredOrigins, readSettings } from './settings.ts'

/** Descriptors beside those of Realtime connections: requests, files, databases, runners. */
const OTHER_DESCRIPTORS = 1_024
/** Threads of a runner, and runners and threads of the server. */
const PROCESSES_WANTED = 512

type MachineName =
  | 'settings'
  | 'stateDirectory'
  | 'disks'
  | 'sync'
  | 'process'
  | 'memory'
  | 'processors'
  | 'sandbox'
  | 'sqliteVersion'
  | 'managementListener'
  | 'applicationListener'
  | 'publicUrl'
  | 'forwarded'
  | 'certificates'
  | 'certificateOrders'
  | 'fileStore'

/** Never rejects. */
export async function readMachine(
  { settings, environment, system, inside, readSandbox }: CollectOptions,
  lock: LockState,
): Promise<Pick<Readings, MachineName>> {
  const { product, management, stateDirectory, memory, realtime } = settings
  const isServed = inside !== null || ('value' in lock && lock.value === 'running')
  const place = existing(product?.root ?? stateDirectory)
  const listener = isServed ? readServedListener : readFreeListener
  const application = product?.applicationListen ?? null
  const { publicUrl } = management
  const s3 = product?.storage.s3 ?? null
  // Without a Product root there is no lock that tells whether a server runs.
  const isUnknown = product === null && inside === null
  const [managementListener, applicationListener, url, certificates, fileStore] = await Promise.all(
    [
      isUnknown || management.listen.port === 0
        ? skip('without a Product root it is not known whether a server has the address')
        : readingOf(() => listener(management.listen)),
      application === null || application.port === 0
        ? skip('no application listener is configured')
        : readingOf(() => listener(application)),
      publicUrl === null
        ? skip('no public URL is configured')
        : isServed
          ? readingOf(() => readPublicUrl(publicUrl))
          : skip('no server runs'),
      readingOf(() =>
        Promise.all(
          configuredOrigins(settings).map((each) => readCertificate(each, system.nowMillis())),
        ),
      ),
      s3 === null
        ? skip('files are in the Product root')
        : readingOf(async () => {
            const objects = new S3Objects(revealAddress(s3))
            await objects.request(objects.requestMillis, () =>
              objects.client.list({ prefix: 'doctor/', maxKeys: 1 }),
            )
            return null
          }),
    ],
  )
  return {
    settings: await readingOf(() => readSettings(settings, environment)),
    stateDirectory: await readingOf(() => {
      checkStateDirectory(stateDirectory)
      return null
    }),
    disks: await readingOf(() => [
      readDisk(place, product?.storage.freeFloorBytes ?? 0),
      ...(existing(stateDirectory) === place ? [] : [readDisk(existing(stateDirectory), 0)]),
    ]),
    sync: await readingOf(() => readSync(place, system)),
    process: await readingOf(() =>
      readProcess({
        descriptorsWanted: realtime.connectionsMax + OTHER_DESCRIPTORS,
        processesWanted: PROCESSES_WANTED,
      }),
    ),
    memory: await readingOf(() => readMemory(memory.targetMib)),
    processors: await readingOf(() => ({
      available: navigator.hardwareConcurrency,
      quota: readQuota(),
      applicationProcesses: product?.applicationProcesses ?? 1,
    })),
    sandbox: await readSandbox(),
    sqliteVersion: await readingOf(sqliteVersion),
    managementListener,
    applicationListener,
    publicUrl: url,
    forwarded:
      inside === null ? skip('only a request shows it: svc doctor') : { value: inside.forwarded },
    certificates,
    certificateOrders:
      settings.tls === null || settings.tls.acme === null
        ? skip('no certificate is ordered by ACME')
        : await readingOf(() => readCertificateOrders(settings.tls!, system.nowMillis())),
    fileStore,
  }
}
