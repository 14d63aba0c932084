// The screens, in the order of their tabs; their keys are 0 to 9.
import type { App, Screen } from "../app";
import { DiffScreen } from "./diff";
import { FindingsScreen } from "./findings";
import { FlameScreen } from "./flame";
import { GrowthScreen } from "./growth";
import { PeaksScreen } from "./peaks";
import { ResidentScreen } from "./resident";
import { SizesScreen } from "./sizes";
import { SpaceScreen } from "./space";
import { ThreadsScreen } from "./threads";
import { WindowScreen } from "./window";

export function screensOf(app: App): Screen[] {
	return [
		new FindingsScreen(app), new WindowScreen(app), new FlameScreen(app), new SizesScreen(app), new ThreadsScreen(app), new SpaceScreen(app),
		new GrowthScreen(app), new PeaksScreen(app), new ResidentScreen(app), new DiffScreen(app),
	];
}
