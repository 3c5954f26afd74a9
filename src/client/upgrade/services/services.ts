/** Finds the service that runs the server of an installation. */
import { findLaunchdService } from './launchd.ts'
import { findOpenRcService } from './open-rc.ts'
import type { Service, ServiceSearch } from './service.ts'
import { findSystemdService } from './systemd.ts'

/** Returns null if no known manager starts the executable. */
export async function findService(
  search: ServiceSearch,
  platform: string,
): Promise<Service | null> {
  if (platform === 'darwin') return findLaunchdService(search)
  return (await findSystemdService(search)) ?? findOpenRcService(search)
}
