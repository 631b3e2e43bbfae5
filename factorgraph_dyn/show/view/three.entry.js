// What the page takes of three.js. three.min.js is made of it by
//     esbuild three.entry.js --bundle --minify --format=iife --global-name=THREE --outfile=three.min.js
// beside the package three 0.187.0, with the licence put in front.
export { AmbientLight, ArrowHelper, AxesHelper, BoxGeometry, BufferAttribute, BufferGeometry, Color, CylinderGeometry, DirectionalLight, DoubleSide, GridHelper, Group, HemisphereLight, Line, LineBasicMaterial, LineDashedMaterial, Matrix4, Mesh, MeshLambertMaterial, MeshStandardMaterial, Object3D, PerspectiveCamera, Quaternion, Raycaster, Scene, SphereGeometry, TorusGeometry, Vector2, Vector3, WebGLRenderer } from "three";
export { OrbitControls } from "three/examples/jsm/controls/OrbitControls.js";
